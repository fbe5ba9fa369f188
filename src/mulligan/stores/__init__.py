"""Where shared state lives: in memory, in a file, on a server.

A store knows nothing about breakers or gates. It keeps states, tells the time, and applies the
core's transitions one after another.
"""
