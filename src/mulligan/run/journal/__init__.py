"""The journal of runs: who holds a run, and what becomes of runs that have ended."""
