"""Adapters for agent programs: one file per program, mostly data."""
