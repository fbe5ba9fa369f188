"""What the callers of one target share: circuit breaker, rate limit gate, retry tokens."""
