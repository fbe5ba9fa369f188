"""The loop of attempts, written once, and the two ways to run it: plain and awaited.

A loop is a generator that yields steps (`Sleep`, `Invoke`, `AskAdmission`, …) and is sent what
came of each. `run` does the steps in a thread, `arun` awaits them. Nothing else waits, so plain
functions and coroutines are treated alike. Streams, keys and blocks are loops on top of this one.

    failed ──▶ decide ──RetryAfter──▶ Sleep ──▶ AskAdmission ──▶ Invoke ──▶ answer, or failed
                 ├──Verify──▶ CallHelper: applied? then its answer, else decided again
                 └──Park, GiveUp──▶ story, events, WriteLetter; fallback or error

What ends a loop is returned, not raised: a StopIteration of the caller's must leave as itself,
and a generator would replace it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TypeAlias, assert_never

from ..core.decisions import GiveUp, Park, RetryAfter, Verify, ending_of
from ..errors import NotAdmitted
from .async_time import cut, in_thread, on_trio
from .callables import COROUTINE, known_results, refuse_unstarted
from .emit import announce, report
from .notes import caused, remark, story
from .settings import APPLIED, NOT_APPLIED
from .wakeups import await_turn, wait_for_turn

if TYPE_CHECKING:
    from ..core.dead_letter import ExhaustedCall
    from ..core.decisions import Decision
    from .session import Session

__all__ = (
    "Blocking",
    "Invoke",
    "Raised",
    "Sleep",
    "Step",
    "Steps",
    "ToBeAwaited",
    "admission",
    "arun",
    "attempts",
    "awaited",
    "run",
    "succeeded",
    "with_limit",
)


class Step(Protocol):
    """Something that a loop waits for."""

    def plain(self, session: Session, /) -> Any:
        """Do it in this thread."""
        ...

    async def awaited(self, session: Session, /) -> Any:
        """Do it without holding up the event loop."""
        ...


Steps: TypeAlias = Generator[Any, Any, Any]


class Raised:
    """A loop ends with this error, which `run` or `arun` raises."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error: BaseException | None = error

    def throw(self) -> NoReturn:
        # A frame that holds the error it raises is a cycle; only the collector could free it.
        error, self.error = self.error, None
        assert error is not None  # noqa: S101 -- thrown once
        try:
            raise error
        finally:
            del error


class ToBeAwaited(NamedTuple):
    """A plain function has returned a coroutine; the caller that awaits it runs the rest."""

    steps: Steps


class Answered(NamedTuple):
    """An attempt that may have been applied was: its answer."""

    answer: Any


class FailedCall(NamedTuple):
    """No further attempt is made: the last error, and why."""

    error: BaseException
    decision: Park | GiveUp


# Steps


class Sleep(float):
    """Let so many seconds pass."""

    __slots__ = ()

    def plain(self, session: Session) -> None:
        session.clock.sleep(self)

    async def awaited(self, session: Session) -> None:
        await session.clock.asleep(self)


class Invoke:
    """Make one attempt. A coroutine is cut where it passes its limit."""

    __slots__ = ()

    def plain(self, session: Session) -> Any:
        function, args, kwargs = session.work  # type: ignore[misc]
        if session.settings.timeout_to:
            kwargs = with_limit(session, kwargs, session.limit()[0])
        return function(*args, **kwargs)

    async def awaited(self, session: Session) -> Any:
        limit, is_deadline = session.limit()
        work, session.pending = session.pending, None
        if work is None:
            function, args, kwargs = session.work  # type: ignore[misc]
            work = function(*args, **with_limit(session, kwargs, limit))
        if not hasattr(work, "__await__"):
            return work
        if limit == inf:
            return await work
        return await cut(work, limit, lambda: session.overtime(limit, is_deadline=is_deadline))


class AskAdmission:
    """Ask whether the next attempt may be made: None, or how long to hold."""

    __slots__ = ()

    def plain(self, session: Session) -> Any:
        return session.admissions.ask()  # type: ignore[union-attr]

    async def awaited(self, session: Session) -> Any:
        admissions = session.admissions
        assert admissions is not None  # noqa: S101 -- yielded only where there are some
        return await in_thread(admissions.ask) if admissions.may_ask_store else admissions.ask()


class TellSuccess:
    """Tell those who admitted the attempt that it has succeeded, before `Session.succeeded` does.

    In a thread, that is, where it takes a round trip to a store.
    """

    __slots__ = ()

    def plain(self, _session: Session) -> None: ...

    async def awaited(self, session: Session) -> None:
        admissions = session.admissions
        if admissions is not None and admissions.may_tell_store:
            await in_thread(admissions.leave, "succeeded")


class Blocking:
    """Do work that is a round trip to a store, where callers share more than this process."""

    __slots__ = ("args", "work")

    def __init__(self, work: Callable[..., Any], *args: Any) -> None:
        self.work, self.args = work, args

    def plain(self, _session: Session) -> Any:
        return self.work(*self.args)

    async def awaited(self, session: Session) -> Any:
        if session.admissions is not None and session.admissions.is_remote:
            return await in_thread(self.work, *self.args)
        return self.work(*self.args)


class WaitInQueue:
    """Wait for the call's turn, or until it may wait no longer."""

    __slots__ = ("hold",)

    def __init__(self, hold: Any) -> None:
        self.hold = hold

    def plain(self, session: Session) -> None:
        left = session.admissions.time_left_to_wait  # type: ignore[union-attr]
        wait_for_turn(session.clock, self.hold, left)

    async def awaited(self, session: Session) -> None:
        left = session.admissions.time_left_to_wait  # type: ignore[union-attr]
        await await_turn(session.clock, self.hold, left)


class _CannotAwait(Exception):
    """A plain call was given a coroutine function for a helper."""


class CallHelper:
    """Call ``verify=`` or a fallback; `is_bounded` for no longer than the deadline leaves."""

    __slots__ = ("args", "function", "is_bounded", "kwargs")

    def __init__(
        self, function: Any, args: Any, kwargs: dict[str, Any], *, is_bounded: bool = False
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.is_bounded = is_bounded

    def plain(self, _session: Session) -> Any:
        answer = self.function(*self.args, **self.kwargs)
        if answer.__class__ is COROUTINE:
            answer.close()
            raise _CannotAwait
        return answer

    async def awaited(self, session: Session) -> Any:
        value = self.function(*self.args, **self.kwargs)
        left = session.call.deadline_at - session.clock.now() if self.is_bounded else inf
        if left == inf or not hasattr(value, "__await__"):
            return await awaited(value)
        return await cut(value, left, lambda: TimeoutError("verify= passed the deadline"))


class WriteLetter:
    """Write a dead letter about the call. What goes wrong with it is reported."""

    __slots__ = ("lost",)

    def __init__(self, lost: ExhaustedCall) -> None:
        self.lost = lost

    def plain(self, session: Session) -> None:
        letters = session.settings.letters
        try:
            self._tell(session, letters.write(self.lost))  # type: ignore[union-attr]
        except Exception as trouble:  # noqa: BLE001 -- reported
            report("dead letters", letters, trouble)

    async def awaited(self, session: Session) -> None:
        letters = session.settings.letters
        try:
            self._tell(session, await letters.awrite(self.lost))  # type: ignore[union-attr]
        except Exception as trouble:  # noqa: BLE001 -- reported
            report("dead letters", letters, trouble)

    @staticmethod
    def _tell(session: Session, trouble: Any) -> None:
        if trouble is not None and session.settings.listeners:
            because = f"a dead letter waits in a file of this machine ({trouble.because})"
            announce(session, "StoreLost", url=trouble.url, because=because)


_ASK, _INVOKE, _LEAVE = AskAdmission(), Invoke(), TellSuccess()


def with_limit(session: Session, kwargs: dict[str, Any], limit: float) -> dict[str, Any]:
    """`kwargs`, with `limit` if the function takes one."""
    parameter = session.settings.timeout_to
    return {**kwargs, parameter: limit} if parameter and limit < inf else kwargs


async def awaited(value: Any) -> Any:
    """`value`, awaited if it can be: a coroutine's world welcomes plain functions, too."""
    return await value if hasattr(value, "__await__") else value


# The two ways to run a loop


def run(session: Session, steps: Steps) -> Any:
    """What a loop ends with, each step done in this thread."""
    value: Any = None
    error: BaseException | None = None
    try:
        while True:
            step = steps.send(value) if error is None else steps.throw(error)
            value = error = None
            try:
                value = step.plain(session)
            except BaseException as caught:  # noqa: BLE001 -- the loop decides
                error = caught
    except StopIteration as end:
        value = end.value
    finally:
        error = step = None
    if value.__class__ is Raised:
        value.throw()
    if value.__class__ is ToBeAwaited:
        return arun(session, value.steps)
    return value


async def arun(session: Session, steps: Steps) -> Any:
    """What a loop ends with, each step awaited."""
    session.is_async = True
    value: Any = None
    error: BaseException | None = None
    try:
        while True:
            step = steps.send(value) if error is None else steps.throw(error)
            value = error = None
            try:
                value = await step.awaited(session)
            except BaseException as caught:  # noqa: BLE001 -- the loop decides
                error = caught
    except StopIteration as end:
        value = end.value
    finally:
        error = step = None
    return value if value.__class__ is not Raised else value.throw()


# Loops


def attempts(  # noqa: C901, PLR0912 -- a call, whole, with all its ends
    session: Session,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: Exception | None = None,
    *,
    invoke: Step = _INVOKE,
) -> Steps:
    """Call `function` until it succeeds or the call has ended.

    `error` is what the attempt ended with that has already been made, if one has; `invoke` how an
    attempt is made (`streams.OpenStream`).
    """
    settings = session.settings
    session.work = function, args, kwargs
    ended: FailedCall | Answered | None = None
    try:
        while True:
            if session.pending is None:
                if error is not None:
                    if session.admissions is not None:
                        decision = yield from _decided(session, error, args, kwargs)
                    else:
                        decision = session.failed(error, args, kwargs)
                    if not isinstance(decision, RetryAfter):
                        ended = yield from _not_retried(session, error, decision, args, kwargs)
                    elif not decision.is_queued:
                        yield Sleep(decision.delay)
                if ended is None and session.is_bounded:
                    ended = yield from admission(session, args, kwargs)
                if ended is not None:
                    return (yield from _ended(session, ended))
                session.begin()
            else:
                session.enter_context()
            try:
                answer = yield invoke
                if answer.__class__ is COROUTINE and not session.is_async:
                    session.leave_context()
                    session.pending = answer
                    return ToBeAwaited(attempts(session, function, args, kwargs))
                if answer.__class__ not in known_results:
                    refuse_unstarted(answer, session.call.name)
                if settings.judge is not None:
                    session.judge(answer)
            except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
                error, session.pending = caught, None
                continue
            if session.delivers:
                return answer  # it has begun; whether it succeeds is seen at its end
            session.answer, session.is_done = answer, True
            if session.admissions is None:
                session.succeeded()
            else:
                if settings.observe is not None:
                    session.admissions.observe(answer)
                yield from succeeded(session)
            return answer
    except BaseException:
        session.cancelled()
        raise
    finally:
        error = ended = None


def _decided(
    session: Session, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Generator[Any, Any, Decision]:
    """As `Session.failed`, with round trips to the store where callers share one."""
    abandoned = session.classify(error, args, kwargs)
    if abandoned is not None:
        return abandoned
    admissions = session.admissions
    assert admissions is not None  # noqa: S101 -- see `attempts`
    yield Blocking(admissions.leave, "failed", session.failure, session.failed_at)
    decision: Decision = yield Blocking(session.reserve_retry, session.decide(error))
    if session.settings.listeners or admissions.changes:
        session.announced(decision)
    return decision


def _not_retried(
    session: Session,
    error: Exception,
    decision: Decision,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Generator[Any, Any, FailedCall | Answered | None]:
    """How the call ends; None if `verify=` found that it may be retried, after the wait."""
    try:
        if isinstance(decision, Verify):
            found = yield from _verified(session, error, args, kwargs)
            if isinstance(found, Answered | FailedCall):
                return found
            decision = found
        match decision:
            case RetryAfter():
                if not decision.is_queued:
                    yield Sleep(decision.delay)
                return None
            case Park() | GiveUp():
                if session.pause:
                    yield Sleep(session.pause)
                return FailedCall(error, decision)
            case _:
                assert_never(decision)
    finally:
        error = None  # type: ignore[assignment]


def admission(
    session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Generator[Any, Any, FailedCall | None]:
    """Be admitted to make the next attempt; or say how the call ends."""
    admissions = session.admissions
    try:
        if session.refusal is not None:
            raise session.refusal
        if admissions is None:
            session.check_deadline()
            return None
        if session.settings.estimate is not None:
            admissions.estimate_tokens(args, kwargs)
        while True:
            hold = yield _ASK
            if hold is not None or admissions.hold is not None:
                hold = admissions.held(hold)
            if admissions.changes:
                session.announce_changes()
            if hold is None:
                return None
            session.announce_hold(hold)
            yield WaitInQueue(hold)
    except NotAdmitted as refusal:
        return FailedCall(*session.refused(refusal))


def _verified(
    session: Session, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Generator[Any, Any, Answered | FailedCall | Park | RetryAfter | GiveUp]:
    """The result of an attempt that was applied; for one that was not, what happens next."""
    try:
        answer = yield CallHelper(session.settings.verify, args, kwargs, is_bounded=True)
    except _CannotAwait:
        return FailedCall(error, session.unverified("a plain call cannot await verify="))
    except Exception as trouble:  # noqa: BLE001 -- the caller's error is the one that counts
        return FailedCall(error, session.unverified(f"verify= raised {type(trouble).__name__}"))
    else:
        if answer is None:
            return FailedCall(error, session.unverified("verify= could not find out"))
    finally:
        error = None  # type: ignore[assignment]
    if answer is NOT_APPLIED:
        return session.verified((yield Blocking(session.reserve_retry, session.not_applied())))
    result = None if answer is APPLIED else answer
    session.answer, session.is_done = result, True
    session.applied()
    return Answered(result)


def _ended(session: Session, ended: FailedCall | Answered) -> Steps:
    """The answer, the fallback's, or the error itself."""
    if isinstance(ended, Answered):
        return ended.answer
    error = session.error_to_raise(ended.error)
    try:
        is_answered = session.end(error, ended.decision)
        lost = _exhausted(session, error, ended.decision)
        if lost is not None:
            yield WriteLetter(lost)
        if not is_answered:
            return Raised(error)
        fallback = session.settings.fallback
        if not callable(fallback):
            return fallback
        try:
            return (yield CallHelper(fallback, (error,), {}))
        except _CannotAwait:
            remark(error, "mulligan: the fallback is a coroutine, the call is not")
            return Raised(error)
        except Exception as second:  # noqa: BLE001 -- returned, to be raised
            caused(second, error)
            return Raised(second)
    finally:
        del error, ended


def succeeded(session: Session) -> Steps:
    """The call has succeeded: have breaker, gate and tokens told."""
    try:
        yield _LEAVE
    finally:
        session.succeeded()  # also if the caller is cancelled meanwhile: it has succeeded


def _exhausted(
    session: Session, error: BaseException, decision: Park | GiveUp
) -> ExhaustedCall | None:
    """The call as a dead letter tells it; None if no letter is written about it."""
    if session.settings.letters is None or session.work is None or session.delivered:
        return None  # what a stream has delivered must not be delivered again by a replay
    tale = story(error)
    if not ending_of(decision)[0].is_exhaustion or tale is None:
        return None
    assert session.failure is not None  # noqa: S101 -- a call that ended has failed
    from ..core.dead_letter import ExhaustedCall  # loaded late: most calls never end here

    function, args, kwargs = session.work
    loop = "" if not session.is_async else "trio" if on_trio() else "asyncio"
    return ExhaustedCall(
        function=function,
        args=args,
        kwargs=kwargs,
        error=error,
        story=tale,
        failure=session.failure,
        effects=str(session.settings.effects),
        under=session.under,
        loop=loop,
        at=session.clock.wall(),
        since=session.mark,
    )
