"""Adapters: Mulligan for other libraries and protocols, one module per library."""
