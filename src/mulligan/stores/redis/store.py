"""Shared state of a fleet, on one Redis or Valkey server.

Transitions are computed here and land there: read the state and the server's time in one round
trip, compute, then write if the state is still what was read, else begin again. The write compares
the stored bytes, so a change in between is always noticed.

What the threads of one process want of one state at the same time is computed together and lands in
one write (`batching`), so that only processes race each other. A process that lost the race
reserves the next turn, and the others wait until it has written: otherwise a slow process would
never succeed among quick ones.

A server that has lost its data would free every key. So with the keys of each target lives a
generation, a random word that is written once. A process that finds another generation than before,
or none, does not use the keys: it cannot know what has been done.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from ...core.moment import Moment
from ...errors import Fenced, StoreDown, StoreError
from ..base import StatesByKey
from ..batching import Batches
from ..entries import JournalLine
from ..forks import reset_after_fork
from ..state_machine import Key, scoped
from .connection import LuaScript, RedisLink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..batching import BatchedOperation
    from ..state_machine import Machine, Operation

__all__ = ("Redis",)

S = TypeVar("S")
R = TypeVar("R")

_READ = LuaScript("""
local t = redis.call('TIME')
return {t[1], t[2], redis.call('MGET', unpack(KEYS))}
""")

# A turn whose process has died expires after 100 ms.
_BEGIN = LuaScript("""
local t = redis.call('TIME')
local generation = KEYS[3] and redis.call('GET', KEYS[3]) or false
if KEYS[3] and not generation and ARGV[3] ~= '' then
  generation = ARGV[3]
  redis.call('SET', KEYS[3], generation)
end
local turn = redis.call('GET', KEYS[2])
if turn and turn ~= ARGV[1] then return {t[1], t[2], false, 0, generation} end
if ARGV[2] == '1' then redis.call('SET', KEYS[2], ARGV[1], 'PX', 100) end
return {t[1], t[2], redis.call('GET', KEYS[1]), 1, generation}
""")

_WRITE = LuaScript("""
if KEYS[3] and redis.call('GET', KEYS[3]) ~= ARGV[5] then return -1 end
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if redis.call('GET', KEYS[2]) == ARGV[4] then redis.call('DEL', KEYS[2]) end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
elseif ARGV[3] == '0' then
  redis.call('SET', KEYS[1], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
""")

_PASS_ON = LuaScript("""
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
""")

_APPEND = LuaScript("""
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

# Seconds that a process waits during another's turn: at first, and the growth factor.
_ASIDE, _SLOWER, _LONGEST_ASIDE = 2e-4, 1.5, 4e-3

# A round trip is not started in the last tenth of the patience: cut off in the middle it would look
# like a server that does not answer, and its outcome would not be known.
_LEAST = 0.1

# More seconds than this count as forever: no expiry is set.
_FOR_EVER = 1e10


class Redis:
    """Shared state of a fleet.

    Args:
        url: ``redis://…``, ``rediss://…`` or ``unix://…``.
        prefix: The prefix of every key.

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
        """Warn once about a server whose settings may lose data."""
        if self._is_looked_at:
            return
        with suppress(StoreDown):  # the caller's own request raises it
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
        self._keys.forget()

    def __repr__(self) -> str:
        return f"Redis({self.url!r})"


def _info(link: RedisLink, section: str) -> dict[str, str]:
    lines = str(link.command("INFO", section)).splitlines()
    pairs = [line.partition(":") for line in lines]
    return {name: value for name, _, value in pairs}


class RedisState(StatesByKey):
    """States by key, one string each.

    Args:
        link: The server.
        prefix: What every key begins with.
        is_strict: Whether a state that cannot be read, or was lost, is an error, not empty.
    """

    def __init__(self, link: RedisLink, prefix: str, *, is_strict: bool = False) -> None:
        self._link, self._prefix, self._is_strict = link, prefix, is_strict
        # Known generations, by the server's key.
        self._generations: dict[str, str] = {}
        self._batches = Batches(link.too_busy)
        self.after_fork()
        reset_after_fork(self)

    def after_fork(self) -> None:
        self._batches.after_fork()
        self._me = secrets.token_hex(8)  # the id of this process in a turn

    def transact(self, key: Key, operation: Operation[S, R]) -> R:
        until, names, machine = self._link.deadline(), self._names(key), operation.machine

        def lead(queued: Callable[[], Iterable[BatchedOperation]]) -> bool:
            return self._raced(key, names, machine, queued, until)

        result: R = self._batches.do((key, machine.name), operation, until, lead)
        return result

    def transact_all(self, steps: Sequence[tuple[Key, Operation[Any, Any]]]) -> list[Any]:
        return [self.transact(key, operation) for key, operation in steps]

    def _raced(
        self,
        key: Key,
        names: list[str],
        machine: Machine[S],
        queued: Callable[[], Iterable[BatchedOperation]],
        until: float,
    ) -> bool:
        """Apply what is queued between one read and one write; whether it landed before `until`."""
        link, me, has_turn = self._link, self._me, False
        while (read := self._read(names, until, has_turn=has_turn)) is not None:
            moment, found = read
            before = self._unpacked(key, machine, found)
            after = before
            for request in queued():
                after = request.apply(after, moment)
            packed = found if after is before else machine.pack(after)
            if packed == found:
                if has_turn:
                    link.run(_PASS_ON, names, [me], until)
                return True
            keep = machine.keep(after, moment)
            expiry = 0 if keep > _FOR_EVER else int(keep * 1000) + 1
            args = [found or "", packed or "", expiry, me, *self._generation(names)]
            landed = link.run(_WRITE, names, args, until)
            if landed < 0:
                raise self._lost()
            if landed:
                return True
            has_turn = True
        return False

    def _generation(self, names: list[str]) -> list[str]:
        """The generation that this process knows of the state called `names`.

        Empty, which no server has, if `forget` was called since the state was read.
        """
        return [self._generations.get(each, "") for each in names[2:]]

    def _check_generation(self, names: list[str], found: str | None) -> None:
        """Remember the generation that the server has, if this is the first time.

        Raises:
            StoreDown: The server has none, or another than this process knows.
        """
        for each in names[2:]:
            if found is None or self._generations.setdefault(each, found) != found:
                raise self._lost()

    def _lost(self) -> StoreDown:
        return StoreDown(
            self._link.url,
            "it lost its data while it was in use, so what has been done is unknown; restore "
            "them, or restart this process to begin with what is there now",
        )

    def forget(self) -> None:
        """Accept the server's current data, as a new process does."""
        self._generations.clear()

    def _read(
        self, names: list[str], until: float, *, has_turn: bool
    ) -> tuple[Moment, str | None] | None:
        """The server's time and the state, once it is no other process's turn; None if too late.

        Args:
            names: The state's key, that of the current turn, and that of the generation.
            until: When to give up, on the process's clock.
            has_turn: Whether to make it our turn, so that no other process begins meanwhile.
        """
        is_known = all(each in self._generations for each in names[2:])
        aside, args = _ASIDE, [self._me, int(has_turn), "" if is_known else secrets.token_hex(8)]
        while until - monotonic() >= _LEAST * self._link.patience:
            seconds, micros, found, is_free, generation = self._link.run(_BEGIN, names, args, until)
            self._check_generation(names, generation)
            if is_free:
                return _moment(seconds, micros), found
            sleep(aside)
            aside = min(aside * _SLOWER, _LONGEST_ASIDE)
        return None

    def peek_all(self, wanted: Sequence[tuple[Key, Machine[Any]]]) -> tuple[list[Any], Moment]:
        if len({(key.target, key.scope) for key, _ in wanted}) > 1:
            # A cluster may have them on several nodes, which one script cannot read.
            each = [self.peek_all([one]) for one in wanted]
            return [states[0] for states, _ in each], each[-1][1]
        names = [self._names(key)[0] for key, _ in wanted]
        seconds, micros, found = self._link.run(_READ, names, [], self._link.deadline())
        states = [
            self._unpacked(key, machine, body)
            for (key, machine), body in zip(wanted, found, strict=True)
        ]
        return states, _moment(seconds, micros)

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
        """The state's key, that of the current turn, and that of the generation if strict."""
        # Braces make all keys of one target live on one node of a cluster.
        target, scope, part = (_quoted(each) for each in (key.target, key.scope, key.part))
        node = f"{self._prefix}:{{{target}|{scope}}}"
        names = [f"{node}:{part}", f"{node}:{part}:turn"]
        return [*names, f"{node}:generation"] if self._is_strict else names

    def known(self, machine: Machine[S]) -> tuple[Key, ...]:
        begin = f"{self._prefix}:{{"
        names = self._link.scan(f"{begin.translate(_LITERAL)}*}}:{machine.name}*")
        found = []
        for name in names:
            if not name.endswith(":turn"):
                inside, _, part = name[len(begin) :].partition("}:")
                target, _, scope = inside.partition("|")
                found.append(Key(unquote(target), unquote(part), unquote(scope)))
        return tuple(sorted(found))


# What has a meaning in our keys is written as in a URL, so that no two names get the same key, and
# a name can be read back from its key.
_MEANINGFUL = str.maketrans({each: f"%{ord(each):02X}" for each in "%{}|:"})


def _quoted(name: str) -> str:
    return name.translate(_MEANINGFUL)


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
        base = f"{self._prefix}:{{journal|{_quoted(stream)}}}"
        return [f"{base}:log", f"{base}:ids", f"{base}:epoch"]

    def append(self, stream: str, entry: JournalLine) -> int:
        line = json.dumps(entry, separators=(",", ":"))
        args = [entry.id, entry.epoch, line]
        landed, number = self._link.run(_APPEND, self._names(stream), args, self._link.deadline())
        if not landed:
            raise Fenced(self._link.url, f"{stream} is written by epoch {number} now")
        return int(number)

    def read(self, stream: str, after: int = 0) -> tuple[JournalLine, ...]:
        lines: list[Any] = self._link.command("LRANGE", self._names(stream)[0], after, -1)
        return tuple([JournalLine(*json.loads(line)) for line in lines])

    def streams(self, prefix: str) -> tuple[str, ...]:
        begin, end = self._names(prefix)[0].split("}:log")[0], "}:log"
        names = self._link.scan(f"{begin.translate(_LITERAL)}*{end}")
        skip = len(self._prefix) + len(":{journal|")
        return tuple(sorted(unquote(name[skip : -len(end)]) for name in names))

    def forget(self, stream: str) -> None:
        self._link.command("DEL", *self._names(stream))
