"""A simulator of servers that fail: the product's own guards in virtual time.

scenario        a server and its clients as data; scenario_file reads them from TOML
limiters        token bucket, fixed window, sliding log, concurrency
server          what the server answers to a request at a given time
engine          agents and processes in virtual time; policies are what it runs
ledger          every request and every job, as they happened
oracle          the best that any client could do: T*, R*
metrics         how far from it a policy was: RQ and its parts
"""
