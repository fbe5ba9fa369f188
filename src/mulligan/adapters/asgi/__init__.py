"""ASGI servers: idempotency keys, problem documents, health. Needs no framework."""

from .health import Health
from .idempotency import IdempotencyMiddleware
from .problems import ProblemMiddleware, problem_handler

__all__ = ("Health", "IdempotencyMiddleware", "ProblemMiddleware", "problem_handler")
