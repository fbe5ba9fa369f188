"""Stores of shared state: in memory, in SQLite files, on Redis and Valkey.

A store knows nothing about breakers or gates. It keeps states, tells the time, and applies the
core's transitions one after another.
"""
