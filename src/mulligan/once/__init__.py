"""Idempotency keys: a claim, a call, a kept result."""
