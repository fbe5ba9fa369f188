"""Calls that failed for good, kept in a store, and replayed."""
