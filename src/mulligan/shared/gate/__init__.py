"""The gate of a target: when its rate limit admits a call, and the queue of calls that wait."""
