"""Listeners for events: logging and counters."""
