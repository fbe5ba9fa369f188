"""One Redis or Valkey server, asked with our own patience.

redis-py's defaults wait and try again for about four seconds. A guarded call must not be held up
so long, so every round trip has a limit here, and nothing is tried twice behind our back.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import MissingExtra, SettingError, StoreDown
from .address import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("RedisLink", "Script")

T = TypeVar("T")


class RedisLink:
    """A pool of connections to one server; threads and forked children may share it.

    Args:
        url: ``redis://…``, ``rediss://…`` or ``unix://…``.
        patience: Seconds that one transaction may take in all.

    Raises:
        MissingExtra: redis-py is not installed.
    """

    def __init__(self, url: str, patience: float) -> None:
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.exceptions import NoScriptError, RedisError
            from redis.retry import Retry
        except ImportError:
            raise MissingExtra("mulligan.stores.redis", "redis") from None
        self.url, self.patience = printable(url), patience
        self._is_closed = False
        self._errors = (RedisError, OSError)
        self._no_script = NoScriptError
        try:
            self._client: Any = redis.Redis.from_url(
                url,
                # Half the patience for one round trip: a transaction takes two.
                socket_timeout=patience / 2,
                socket_connect_timeout=patience / 2,
                retry=Retry(NoBackoff(), 0),
                decode_responses=True,
                client_name="mulligan",
            )
        except ValueError as trouble:
            raise SettingError(f"{self.url} is no address of a server: {trouble}") from None

    def run(self, script: Script, keys: Sequence[str], args: Sequence[Any], began: float) -> Any:
        """What `script` answers.

        Args:
            script: The script.
            keys: Its keys.
            args: Its arguments.
            began: When the transaction began, on the process's clock.

        Raises:
            StoreDown: The server did not answer in time.
        """
        if monotonic() - began > self.patience / 2:
            raise StoreDown(self.url, f"too many others write: gave up after {self.patience:g}s")
        return self._asked(self._evaluated, script, len(keys), *keys, *args)

    def _evaluated(self, script: Script, *words: Any) -> Any:
        try:
            return self._client.evalsha(script.digest, *words)
        except self._no_script:  # SCRIPT FLUSH, or a server that was started anew
            return self._client.eval(script.text, *words)

    def command(self, *words: Any) -> Any:
        """What the server answers to a plain command."""
        return self._asked(self._client.execute_command, *words)

    def scan(self, pattern: str) -> list[str]:
        """Every key that matches."""
        return self._asked(lambda: sorted(self._client.scan_iter(match=pattern, count=500)))

    def _asked(self, ask: Callable[..., T], *words: Any) -> T:
        try:
            return ask(*words)
        except self._errors as trouble:
            raise self.down(trouble) from None
        except Exception:
            # A connection that is closed under whoever reads from it fails in any of its lines.
            if not self._is_closed:
                raise
            raise StoreDown(self.url, "it was closed while it was asked") from None

    def down(self, trouble: Exception) -> StoreDown:
        """The error for `trouble`. Its words may hold the address, but never the password."""
        return StoreDown(self.url, f"no answer ({type(trouble).__name__})")

    def close(self) -> None:
        self._is_closed = True
        self._client.close()


class Script:
    """A Lua script, known to the server by its digest."""

    __slots__ = ("digest", "text")

    def __init__(self, text: str) -> None:
        from hashlib import sha1

        self.text = text
        # The server's name for a script, nothing that must be secure.
        self.digest = sha1(text.encode(), usedforsecurity=False).hexdigest()
