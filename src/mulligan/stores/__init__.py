"""Stores of shared state: in memory, in SQLite files, on Redis and Valkey.

A store keeps states, tells the time, and applies transitions of state machines one after another;
it does not interpret them.
"""
