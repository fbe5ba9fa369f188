"""Every exception that Mulligan raises itself.

The caller's own exceptions are never wrapped or replaced by these: they pass through,
annotated. The classes below are raised only where the caller has no exception of its own.

    MulliganError
    ├── SettingError (ValueError)     an invalid setting
    │   └── FileError                 … in a file: which one, which key, the nearest known key
    ├── MissingExtra (ImportError)    an optional package is not installed
    ├── FailedAnswer                  the answer was judged a failure; carries it
    ├── GitError                      git could not do what was asked of it
    │   ├── GitRefused                … or must not, in the state the tree is in
    │   │   └── TreeBusy              … because another run works there
    │   ├── GitStopped                … because it was asked to stop
    │   └── HookFailed                … because a hook of the repository refused
    ├── KeyReused                     one key, two operations
    ├── NotKept                       the operation was done, its result not stored; carries it
    ├── StoreError                    shared state
    │   ├── StoreDown                 … that cannot be reached in time
    │   │   └── StoreUnwritable       … that can be read, and takes no writes
    │   └── Fenced                    … that another process has claimed meanwhile
    └── NotAdmitted                   the call was not made
        ├── CircuitOpen               the target is not worth calling now
        ├── DeadlinePassed (TimeoutError)  there is no time left to call
        ├── KeyBusy                   another caller holds the same key
        └── LimitReached              the target does not let us call now
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core.failure import Failure

__all__ = (
    "CircuitOpen",
    "DeadlinePassed",
    "FailedAnswer",
    "Fenced",
    "FileError",
    "GitError",
    "GitRefused",
    "GitStopped",
    "HookFailed",
    "KeyBusy",
    "KeyReused",
    "LimitReached",
    "MissingExtra",
    "MulliganError",
    "NotAdmitted",
    "NotKept",
    "SettingError",
    "StoreDown",
    "StoreError",
    "StoreUnwritable",
    "TreeBusy",
)


class MulliganError(Exception):
    """The base class of Mulligan's own exceptions."""

    def __reduce__(self) -> tuple[object, ...]:
        # The constructors take facts, not messages; a pickle carries what they made of them.
        return _rebuilt, (type(self), self.args, self.__dict__.copy())


def _rebuilt(
    cls: type[MulliganError], args: tuple[object, ...], state: dict[str, object]
) -> MulliganError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class SettingError(MulliganError, ValueError):
    """An invalid setting: says what was asked, what was found, what to do."""


class FileError(SettingError):
    """An invalid setting in a file.

    Args:
        message: What was found, in a clause.
        file: The file, as the user named it.
        key: The path of the key, ``rules.rate_limit.attempts``; empty for the whole file.
        line: The line the key stands on, where it could be found.
        hint: What to do, where there is something to say.
    """

    def __init__(
        self, message: str, *, file: str, key: str = "", line: int | None = None, hint: str = ""
    ) -> None:
        self.message, self.file, self.key, self.line, self.hint = message, file, key, line, hint
        place = file if line is None else f"{file}:{line}"
        where = f"{place}: {key}" if key else place
        super().__init__(f"{where}: {message}" + (f"; {hint}" if hint else ""))


class MissingExtra(MulliganError, ImportError):
    """An optional package is not installed.

    Args:
        module: The module that needs it, as users import it.
        extra: The extra that brings it.
    """

    def __init__(self, module: str, extra: str) -> None:
        self.module, self.extra = module, extra
        super().__init__(f"{module} needs the {extra} extra: pip install 'mulligan[{extra}]'")


class FailedAnswer(MulliganError):
    """The function answered, and its answer was judged a failure.

    Args:
        failure: What the judge found.
        answer: The answer itself, untouched.
    """

    def __init__(self, failure: Failure, answer: object) -> None:
        self.failure, self.answer = failure, answer
        super().__init__(f"the answer is a failure ({failure})")


class GitError(MulliganError):
    """Git could not do what was asked of it; what was set aside before stays reachable.

    Args:
        message: What was asked, what was found, what to do.
        output: What git or the hook printed, cleaned and cut.
    """

    def __init__(self, message: str, output: str = "") -> None:
        self.output = output
        super().__init__(message)


class GitRefused(GitError):
    """The tree is in a state in which nothing may be set aside; nothing was touched."""


class TreeBusy(GitRefused):
    """Another run works in the tree; it is free when that run ends."""


class GitStopped(GitError):
    """Git was asked to stop while at work; what was begun can be continued."""


class HookFailed(GitError):
    """A hook of the repository refused the commit; the files are as they were."""


class KeyReused(MulliganError):
    """A key that stands for one operation was used for another: a mistake in the program.

    Nothing was called. Never answered with a new key: that could do twice what the old one
    stands for (E-F3).

    Args:
        key: The key.
        because: What differs, in one sentence.
    """

    def __init__(self, key: str, because: str) -> None:
        self.key, self.because = key, because
        super().__init__(f"operation {key!r}: {because}")


class NotKept(MulliganError):
    """The operation was done, but its result was not stored; it is not done again under this key.

    Args:
        key: The key.
        because: What was found and what to do, in one sentence.
        value: What the function returned, for the caller for whom it ran; None for others.
    """

    def __init__(self, key: str, because: str, value: object = None) -> None:
        self.key, self.because, self.value = key, because, value
        super().__init__(f"operation {key!r}: {because}")


class StoreError(MulliganError):
    """Shared state could not be read or changed.

    Args:
        url: The store, without its password.
        because: What was asked, what was found, what to do, in one sentence.
    """

    def __init__(self, url: str, because: str) -> None:
        self.url, self.because = url, because
        super().__init__(f"{url}: {because}")


class StoreDown(StoreError):
    """The store did not answer in time. What was asked may or may not have landed: ask again."""


class StoreUnwritable(StoreDown):
    """The store can be read but takes no writes: its disk or memory is full, or it is read-only."""


class Fenced(StoreError):
    """Another process has claimed it meanwhile; this holder's write was refused."""


class NotAdmitted(MulliganError):
    """The call was not made; nothing was sent and no attempt is counted.

    Args:
        target: The dependency that would have been called.
        because: Why it was not, in one sentence.
    """

    def __init__(self, target: str, because: str) -> None:
        self.target, self.because = target, because
        super().__init__(f"{target}: {because}")


class CircuitOpen(NotAdmitted):
    """The target has failed so often that calling it now would only make it worse.

    Not retriable: ask again after `retry_in` seconds, use another provider, or a cached answer.

    Args:
        target: The dependency that would have been called.
        retry_in: Seconds until the breaker lets a probe through.
        because: Why it is open, in one sentence.
    """

    def __init__(self, target: str, retry_in: float, because: str) -> None:
        self.retry_in = retry_in
        super().__init__(target, because)


class DeadlinePassed(NotAdmitted, TimeoutError):
    """The deadline passed before the first attempt could begin."""


class KeyBusy(NotAdmitted):
    """Another caller holds the same key, and did not finish while this one could wait.

    Args:
        target: The dependency that would have been called.
        retry_in: Seconds after which the key is free, unless its holder still lives.
        because: Which key, in one sentence.
    """

    def __init__(self, target: str, retry_in: float, because: str) -> None:
        self.retry_in = retry_in
        super().__init__(target, because)


class LimitReached(NotAdmitted):
    """The target's limit is used up, and waiting for it would take longer than `in_place`.

    Args:
        target: The dependency that would have been called.
        until: When the target lets us call again, in epoch seconds.
        because: Which limit, in one sentence.
    """

    def __init__(self, target: str, until: float, because: str) -> None:
        self.until = until
        super().__init__(target, because)
