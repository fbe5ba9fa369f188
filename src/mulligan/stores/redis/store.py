"""Shared state of a fleet, on one Redis or Valkey server.

Transitions are computed here and land there: read the state and the server's time in one round
trip, compute, then write if the state is still what was read. If it is not, the answer brings the
new state along, so that trying again costs one round trip and not two. Two states that read the
same are the same, so nothing can slip in between unnoticed.

Whoever loses this race a few times asks for the next turn, and the others let it pass: without
that, a slow process among quick ones would never be done in time.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote
from weakref import WeakValueDictionary

from ..core.entry import Entry
from ..core.machine import Key
from ..core.moment import Moment
from ..errors import Fenced, StoreDown, StoreError
from .forks import made_anew
from .redis_link import RedisLink, Script
from .scopes import scoped
from .threads import in_thread

if TYPE_CHECKING:
    from ..core.machine import Machine, Operation

__all__ = ("Redis",)

S = TypeVar("S")
R = TypeVar("R")

_READ = Script("""
local t = redis.call('TIME')
return {t[1], t[2], redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])}
""")

_WRITE = Script("""
local found = redis.call('GET', KEYS[1])
if (found or '') ~= ARGV[1] then
  local t = redis.call('TIME')
  if ARGV[4] ~= '' then redis.call('SET', KEYS[2], ARGV[4], 'NX', 'PX', 100) end
  return {t[1], t[2], found}
end
if ARGV[4] ~= '' and redis.call('GET', KEYS[2]) == ARGV[4] then redis.call('DEL', KEYS[2]) end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
elseif ARGV[3] == '0' then
  redis.call('SET', KEYS[1], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
""")

_PASS_ON = Script("""
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
""")

_APPEND = Script("""
local seen = redis.call('HGET', KEYS[2], ARGV[1])
if seen then return {1, tonumber(seen)} end
local newest = tonumber(redis.call('GET', KEYS[3]) or '0')
if tonumber(ARGV[2]) < newest then return {0, newest} end
redis.call('SET', KEYS[3], ARGV[2])
local place = redis.call('RPUSH', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[1], place)
return {1, place}
""")

# How long a guarded call may be held up, and how long work that must be recorded may.
_STATE_PATIENCE = 0.25
_JOURNAL_PATIENCE = 5.0

# Races lost before a process asks for the next turn, and how long the others then step aside.
_LOSSES = 2
_ASIDE = 2e-4

# Seconds that nobody lives to see the end of; what is kept longer has no expiry.
_FOR_EVER = 1e10


class Redis:
    """Shared state of a fleet.

    Args:
        url: ``redis://…``, ``rediss://…`` or ``unix://…``.
        prefix: What every key of ours begins with.

    Raises:
        MissingExtra: redis-py is not installed.
    """

    def __init__(self, url: str, prefix: str = "mulligan") -> None:
        self._hot = RedisLink(url, _STATE_PATIENCE)
        self._cold = RedisLink(url, _JOURNAL_PATIENCE)
        self.url = self._hot.url
        self._prefix = prefix
        self.state = RedisState(self._hot, prefix)
        self._keys = RedisState(self._cold, f"{prefix}:keys", is_strict=True)
        self._journal = RedisJournal(self._cold, prefix)
        self._salt = ""
        self._is_looked_at = False

    @property
    def keys(self) -> RedisState:
        self._look_once()
        return self._keys

    @property
    def journal(self) -> RedisJournal:
        self._look_once()
        return self._journal

    def _look_once(self) -> None:
        """Warn about a server that may forget, before anything is entrusted to it."""
        if self._is_looked_at:
            return
        with suppress(StoreDown):  # whoever asked is told by what it asked for
            remarks = self.remarks()
            self._is_looked_at = True
            if remarks:
                import logging

                for remark in remarks:
                    logging.getLogger("mulligan").warning("%s", remark)

    def scoped(self, scope: str) -> str:
        if scope and not self._salt:
            name = f"{self._prefix}:salt"
            self._hot.command("SET", name, secrets.token_hex(16), "NX")
            self._salt = self._hot.command("GET", name)
        return scoped(scope, self._salt)

    def remarks(self) -> tuple[str, ...]:
        """What this server's settings put at risk, in a sentence each; empty if nothing."""
        found: list[str] = []
        if not int(_info(self._cold, "persistence").get("aof_enabled", "1")):
            found.append(
                f"{self.url} keeps no append-only file: keys and journal are lost when it "
                f"restarts; set appendonly yes"
            )
        policy = _info(self._cold, "memory").get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            found.append(
                f"{self.url} may evict keys ({policy}): what was done once could be done again; "
                f"set maxmemory-policy noeviction"
            )
        return tuple(found)

    def close(self) -> None:
        self._hot.close()
        self._cold.close()

    def __repr__(self) -> str:
        return f"Redis({self.url!r})"


def _info(link: RedisLink, section: str) -> dict[str, str]:
    answer = link.command("INFO", section)
    return {str(name): str(value) for name, value in answer.items()}


class RedisState:
    """States by key, one string each.

    Args:
        link: The server.
        prefix: What every key begins with.
        is_strict: Whether a state that cannot be read is an error; else it is begun anew.
    """

    def __init__(self, link: RedisLink, prefix: str, *, is_strict: bool = False) -> None:
        self._link, self._prefix, self._is_strict = link, prefix, is_strict
        self.after_fork()
        made_anew(self)

    def after_fork(self) -> None:
        # The threads of one process take turns at a key: racing each other they would only try
        # again. A lock goes when nobody is at its key.
        self._turns: WeakValueDictionary[Key, Any] = WeakValueDictionary()

    def transact(self, key: Key, operation: Operation[S, R]) -> R:
        began = monotonic()
        # Should two threads make one each, they race like two processes, and nothing is lost.
        turn = self._turns.setdefault(key, Lock())
        if not turn.acquire(timeout=self._link.patience / 2):
            raise self._link.down(TimeoutError())
        try:
            return self._raced(key, operation, began)
        finally:
            turn.release()

    def _raced(self, key: Key, operation: Operation[S, R], began: float) -> R:
        machine, names = operation.machine, self._names(key)
        me, tries = "", 0
        moment, found = self._read(names, began)
        while True:
            before = self._unpacked(key, machine, found)
            after, result = operation(before, moment)
            packed = found if after is before else machine.pack(after)
            if packed == found:
                if me:
                    self._link.run(_PASS_ON, names, [me], began)
                return result
            keep = machine.keep(after, moment)
            expiry = 0 if keep > _FOR_EVER else int(keep * 1000) + 1
            args = [found or "", packed or "", expiry, me]
            answer = self._link.run(_WRITE, names, args, began)
            if answer == 1:
                return result
            seconds, micros, found = answer
            moment = _moment(seconds, micros)
            tries += 1
            if tries >= _LOSSES:
                me = me or secrets.token_hex(8)

    def _read(self, names: list[str], began: float) -> tuple[Moment, str | None]:
        """The server's time and the state, once it is nobody else's turn."""
        while True:
            seconds, micros, found, turn = self._link.run(_READ, names, [], began)
            if turn is None:
                return _moment(seconds, micros), found
            sleep(_ASIDE)

    def peek(self, key: Key, machine: Machine[S]) -> tuple[S, Moment]:
        seconds, micros, found, _ = self._link.run(_READ, self._names(key), [], monotonic())
        return self._unpacked(key, machine, found), _moment(seconds, micros)

    def _unpacked(self, key: Key, machine: Machine[S], found: str | None) -> S:
        try:
            return machine.unpack(found)
        except ValueError as trouble:
            if self._is_strict:
                raise StoreError(
                    self._link.url,
                    f"the {machine.name} of {key.target} cannot be read ({trouble}); "
                    f"another version wrote it: upgrade, or use another prefix",
                ) from None
            return machine.start

    def _names(self, key: Key) -> list[str]:
        """The state's key, and that of whoever's turn it is."""
        # Braces make all keys of one target live on one node of a cluster.
        target = key.target.translate(_NO_BRACES)
        name = f"{self._prefix}:{{{target}|{key.scope}}}:{key.part}"
        return [name, f"{name}:turn"]

    def known(self, machine: Machine[S]) -> tuple[Key, ...]:
        names = self._link.scan(f"{self._prefix}:{{*}}:{machine.name}*")
        found = []
        for name in names:
            if name.endswith(":turn"):
                continue
            inside, _, part = name[len(self._prefix) + 2 :].partition("}:")
            target, _, scope = inside.rpartition("|")
            found.append(Key(target, part, scope))
        return tuple(sorted(found))

    async def atransact(self, key: Key, operation: Operation[S, R]) -> R:
        return await in_thread(self.transact, key, operation)

    async def apeek(self, key: Key, machine: Machine[S]) -> tuple[S, Moment]:
        return await in_thread(self.peek, key, machine)


_NO_BRACES = str.maketrans("{}", "()")

# The name of a stream can be read back from its key.
_REVERSIBLE = str.maketrans({"{": "%7B", "}": "%7D", "%": "%25"})

# What means itself in the pattern of a SCAN.
_LITERAL = str.maketrans({each: f"\\{each}" for each in "*?[]\\"})


def _moment(seconds: str, micros: str) -> Moment:
    now = int(seconds) + int(micros) / 1e6
    return Moment(now, now, "server")


class RedisJournal:
    """Entries by stream, one list each."""

    def __init__(self, link: RedisLink, prefix: str) -> None:
        self._link, self._prefix = link, prefix

    def _names(self, stream: str) -> list[str]:
        base = f"{self._prefix}:{{journal|{stream.translate(_REVERSIBLE)}}}"
        return [f"{base}:log", f"{base}:ids", f"{base}:epoch"]

    def append(self, stream: str, entry: Entry) -> int:
        line = json.dumps(entry, separators=(",", ":"))
        args = [entry.id, entry.epoch, line]
        landed, number = self._link.run(_APPEND, self._names(stream), args, monotonic())
        if not landed:
            raise Fenced(self._link.url, f"{stream} is written by epoch {number} now")
        return int(number)

    def read(self, stream: str, after: int = 0) -> tuple[Entry, ...]:
        lines: list[Any] = self._link.command("LRANGE", self._names(stream)[0], after, -1)
        return tuple([Entry(*json.loads(line)) for line in lines])

    def streams(self, prefix: str) -> tuple[str, ...]:
        begin, end = self._names(prefix)[0].split("}:log")[0], "}:log"
        names = self._link.scan(f"{begin.translate(_LITERAL)}*{end}")
        skip = len(self._prefix) + len(":{journal|")
        return tuple(sorted(unquote(name[skip : -len(end)]) for name in names))

    def forget(self, stream: str) -> None:
        self._link.command("DEL", *self._names(stream))

    async def aappend(self, stream: str, entry: Entry) -> int:
        return await in_thread(self.append, stream, entry)

    async def aread(self, stream: str, after: int = 0) -> tuple[Entry, ...]:
        return await in_thread(self.read, stream, after)
