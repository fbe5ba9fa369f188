"""Listeners for events: logs, JSON lines, counters, a store, Prometheus, OpenTelemetry."""
