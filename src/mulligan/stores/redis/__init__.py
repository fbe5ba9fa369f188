"""The store of a fleet, on one Redis or Valkey server."""
