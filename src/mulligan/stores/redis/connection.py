"""Connections to one Redis or Valkey server, each use of them bounded by a deadline.

redis-py's own pool raises at once when all its connections are in use, and its timeouts are per
socket operation: connecting, the handshake and two round trips add up. A guarded call must not be
held up for longer than the store's patience, so the pool here waits for a free connection, and
whatever is done with it gets the time that is left until the deadline, and no more.
"""

from __future__ import annotations

from threading import Semaphore
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.redaction import presentable
from ...errors import MissingExtra, SettingError, StoreDown, StoreUnwritable
from ..forks import reset_after_fork
from ..open import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("LuaScript", "RedisLink")

T = TypeVar("T")

# Connections that one link opens at most. They are opened when they are needed, and more would not
# make anything quicker: Python reads from one of them at a time.
_MOST = 32

# Prefixes of error replies of a server that can be read but refuses writes.
_UNWRITABLE = ("OOM", "READONLY", "MISCONF", "NOREPLICAS")


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
            from redis.exceptions import NoScriptError, RedisError, ResponseError
            from redis.retry import Retry
        except ImportError:
            raise MissingExtra("mulligan.stores.redis.store", "redis") from None
        self.url, self.patience = printable(url), patience
        self._errors = (RedisError, OSError)
        self._reply_error, self._no_script = ResponseError, NoScriptError
        try:
            # Used only to parse the address and to make connections of its kind.
            made = redis.ConnectionPool.from_url(
                url,
                retry=Retry(NoBackoff(), 0),
                protocol=2,
                decode_responses=True,
                client_name="mulligan",
            )
        except ValueError as trouble:
            raise SettingError(f"{self.url} is not a server address: {trouble}") from None
        self._new_connection: Callable[[], Any] = lambda: made.connection_class(
            **made.connection_kwargs
        )
        self.after_fork()
        reset_after_fork(self)

    def after_fork(self) -> None:
        # Idle connections, the one used last at the end. A child does not use its parent's.
        self._idle: list[_Connection] = []
        self._room = Semaphore(_MOST)
        self._closings = 0

    def deadline(self) -> float:
        """When a transaction that begins now must have ended, on the process's clock."""
        return monotonic() + self.patience

    def run(self, script: LuaScript, keys: Sequence[str], args: Sequence[Any], until: float) -> Any:
        """What `script` answers; `until` is when the transaction must have ended.

        Raises:
            StoreDown: The server did not answer in time.
        """
        words = (len(keys), *keys, *args)

        def evaluated(connection: _Connection) -> Any:
            try:
                return self._asked(connection, ("EVALSHA", script.digest, *words), until)
            except self._no_script:  # SCRIPT FLUSH, or a server that was restarted
                return self._asked(connection, ("EVAL", script.text, *words), until)

        return self._connected(evaluated, until)

    def command(self, *words: Any) -> Any:
        """What the server answers to a plain command."""
        until = self.deadline()
        return self._connected(lambda each: self._asked(each, words, until), until)

    def scan(self, pattern: str) -> list[str]:
        """Every key that matches."""
        found: set[str] = set()
        cursor = "0"
        while True:
            cursor, names = self.command("SCAN", cursor, "MATCH", pattern, "COUNT", 500)
            found.update(names)
            if str(cursor) == "0":
                return sorted(found)

    # Connections

    def _connected(self, ask: Callable[[_Connection], T], until: float) -> T:
        """What `ask` returns for a connection that no other thread uses meanwhile."""
        if not self._room.acquire(timeout=self._left(until)):
            raise self.too_busy()
        try:
            return self._lent(ask, self._usable(until))
        except self._errors as trouble:
            raise self._down(trouble) from None
        finally:
            self._room.release()

    def _lent(self, ask: Callable[[_Connection], T], connection: _Connection) -> T:
        idle, closings = self._idle, self._closings
        is_in_order = False
        try:
            answer = ask(connection)
            is_in_order = True
        except self._reply_error:
            is_in_order = True  # the server answered, with an error
            raise
        finally:
            # Else an unread answer may still come.
            if is_in_order and closings == self._closings:
                idle.append(connection)
            else:
                connection.end()
        return answer

    def _usable(self, until: float) -> _Connection:
        """An idle connection that is still open, or a new one."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return _Connection(self._new_connection(), self._left(until))
            try:
                if connection.is_open():
                    return connection
            except self._errors:
                pass
            connection.end()

    def _asked(self, connection: _Connection, words: Sequence[Any], until: float) -> Any:
        return connection.ask(words, self._left(until))

    def _left(self, until: float) -> float:
        left = until - monotonic()
        if left <= 0:
            raise self.too_busy()
        return left

    def too_busy(self) -> StoreDown:
        """The error for what was not done in time, though the server may answer."""
        return StoreDown(self.url, f"it was too busy: gave up after {self.patience:g}s")

    def _down(self, trouble: Exception) -> StoreDown:
        """The error for `trouble`. Its words may hold the address, but never the password."""
        if not isinstance(trouble, self._reply_error):
            return StoreDown(self.url, f"no answer ({type(trouble).__name__})")
        said = presentable(str(trouble), 200)
        # redis-py makes some of these codes a class of its own, and cuts them off the message.
        name = type(trouble).__name__
        if said.startswith(_UNWRITABLE) or name in {"OutOfMemoryError", "ReadOnlyError"}:
            return StoreUnwritable(self.url, f"it takes no writes: {said}")
        return StoreDown(self.url, f"it refused: {said}")

    def close(self) -> None:
        """Disconnect from the server; a later request connects again."""
        self._closings += 1
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                return
            connection.end()


class _Connection:
    """One connection of redis-py's, which waits as long as it is told.

    Every call into the socket lets the other threads of the process run, and it may be long until
    they let us run again. So its timeout is changed only where that makes a difference.

    Args:
        bare: The connection, not connected yet.
        left: Seconds to connect in.
    """

    __slots__ = ("_bare", "_timeout")

    def __init__(self, bare: Any, left: float) -> None:
        self._bare, self._timeout = bare, left
        # A name may have two addresses, each with a time of its own.
        bare.socket_connect_timeout, bare.socket_timeout = left / 2, left
        bare.connect()

    def is_open(self) -> bool:
        """Whether it can be used: unrequested readable data means that the server closed it."""
        return not self._bare.can_read()

    def ask(self, words: Sequence[Any], left: float) -> Any:
        """What the server answers, within `left` seconds."""
        if not 0.8 * left <= self._timeout <= left:
            self._timeout = 0.9 * left
            self._bare.update_current_socket_timeout(self._timeout)
        self._bare.send_command(*words, check_health=False)
        return self._bare.read_response()

    def end(self) -> None:
        self._bare.disconnect()


class LuaScript:
    """A Lua script, known to the server by its digest."""

    __slots__ = ("digest", "text")

    def __init__(self, text: str) -> None:
        from hashlib import sha1

        self.text = text
        # The server's name for a script, nothing that must be secure.
        self.digest = sha1(text.encode(), usedforsecurity=False).hexdigest()
