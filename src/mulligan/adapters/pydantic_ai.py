"""GuardedModel: a pydantic-ai model under a guard, for providers that take no HTTP client.

Where the provider takes ``http_client=``, wrap that instead: it sees streams to their end.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from pydantic_ai.models.wrapper import WrapperModel

from ..core.failure import Effects

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pydantic_ai.models import Model

    from ..api.guard import Guard

__all__ = ("GuardedModel",)


class GuardedModel(WrapperModel):
    """A model whose requests `guard` retries; streams until they are opened.

    Args:
        wrapped: The model, with its own retries off: ``ModelSettings(max_retries=0)``.
        guard: What decides about retries. A question to a model may be repeated.
    """

    def __init__(self, wrapped: Model, guard: Guard) -> None:
        super().__init__(wrapped)
        self.guard = guard.but(effects=Effects.IDEMPOTENT)

    async def request(self, *args: Any, **kwargs: Any) -> Any:
        return await self.guard.acall(self.wrapped.request, *args, **kwargs)

    @asynccontextmanager
    async def request_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Any]:
        async with AsyncExitStack() as stack:

            async def opened() -> Any:
                return await stack.enter_async_context(self.wrapped.request_stream(*args, **kwargs))

            yield await self.guard.acall(opened)
