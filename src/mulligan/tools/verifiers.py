"""Verifiers for self-correction: what is wrong with a result, in words that a model can act on.

A verifier is made from a pydantic model, a JSON schema, a command, or a function.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..core.duration import Duration, duration_text, seconds
from ..core.record import record
from ..core.redaction import presentable
from ..errors import SettingError
from .json_schema import JsonSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("Command", "Verification", "verification_of", "verifier_of")

_NOTHING_SAID = ("the result did not pass",)

# What a model is told about one reason, in characters; of a command's output, the end of it.
_REASON = 1000


@record()
class Verification:
    """What a verifier found."""

    reasons: tuple[str, ...] = ()  # what is wrong with the result; empty if it passes
    parsed: Any = None  # the result as the verifier read it: an instance of the model


class Command:
    """Passes if a command exits with 0, such as the tests of a repository.

    It is run without a shell. The result itself is not given to it: what it checks is what the
    agent has written to the folder.

    Args:
        argv: The program and its arguments.
        cwd: The folder to run it in; the current one by default.
        timeout: How long it may take; then it is ended, which counts as a failure.
        environ: Its environment; ours by default.

    Raises:
        SettingError: One of them is invalid.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        timeout: Duration = "10m",
        environ: dict[str, str] | None = None,
    ) -> None:
        if isinstance(argv, str) or not argv or not all(isinstance(each, str) for each in argv):
            raise SettingError(f"a command needs a list of words, ['pytest', '-q']; got {argv!r}")
        self._argv, self._cwd, self._environ = list(argv), cwd, environ
        self._timeout = seconds(timeout, name="timeout")

    def __call__(self, _: object) -> Verification:
        process = self._started()
        try:
            return self._finished(process)
        except BaseException:
            _end(process)
            raise

    async def checked(self) -> Verification:
        """Like calling it, for coroutines: the command is ended if the caller is cancelled."""
        from .execution import called

        process = self._started()
        try:
            verification: Verification = await called(
                self._finished, {"process": process}, is_inline=False
            )
        except BaseException:
            _end(process)
            raise
        return verification

    def _started(self) -> subprocess.Popen[str]:
        # A session of its own: what it starts is ended with it.
        return subprocess.Popen(  # noqa: S603 -- the command is the caller's
            self._argv,
            cwd=self._cwd,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def _finished(self, process: subprocess.Popen[str]) -> Verification:
        name = presentable(" ".join(self._argv), 200)
        try:
            said, _ = process.communicate(timeout=self._timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            said, _ = process.communicate()
            limit = duration_text(self._timeout)
            return Verification((f"{name} was ended after {limit}", *_tail(said)))
        if process.returncode == 0:
            return Verification()
        return Verification((f"{name} exited with {process.returncode}", *_tail(said)))


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)


def _tail(said: str) -> tuple[str, ...]:
    """The end of what a command printed: where test runners sum up."""
    found = said.strip()[-_REASON:]
    return (presentable(found, _REASON),) if found else ()


def verifier_of(verify: Any) -> Callable[[Any], Any]:
    """The verifier that `verify` means; raises SettingError if it means none.

    A pydantic model or any type that pydantic reads; a JSON schema, as a dict; a command, as a list
    of words or a `Command`; or a function of the result.
    """
    if isinstance(verify, dict):
        return _by_schema(JsonSchema(verify))
    if isinstance(verify, list | tuple):
        return Command(verify)
    if isinstance(verify, Command):
        return verify
    if isinstance(verify, type):
        return _by_model(verify)
    if callable(verify):
        return verify  # type: ignore[no-any-return]
    raise SettingError(
        f"verify needs a function, a pydantic model, a JSON schema or a command; got {verify!r}"
    )


def _by_model(model: type) -> Callable[[Any], Verification]:
    from pydantic import TypeAdapter, ValidationError

    adapter: TypeAdapter[Any] = TypeAdapter(model)

    def check(result: Any) -> Verification:
        try:
            is_text = isinstance(result, str | bytes) and model not in {str, bytes}
            read = adapter.validate_json if is_text else adapter.validate_python
            return Verification((), read(result))
        except ValidationError as error:
            return Verification(_reasons(error))

    return check


def _reasons(error: Any) -> tuple[str, ...]:
    return tuple(
        f"{'.'.join(str(part) for part in each['loc']) or 'the result'}: {each['msg']}"
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    )


def _by_schema(schema: JsonSchema) -> Callable[[Any], Verification]:
    def check(result: Any) -> Verification:
        if isinstance(result, str | bytes):
            try:
                result = json.loads(result)
            except (ValueError, RecursionError) as error:
                return Verification((f"the result is not JSON: {error}",))
        return Verification(tuple(schema.wrong(result)), result)

    return check


def verification_of(answer: Any) -> Verification:
    """What a verifying function said.

    True or nothing passes; False, a text or a list of texts does not; a pair says both.

    Raises:
        SettingError: It is none of these.
    """
    match answer:
        case Verification():
            return answer
        case None | True | (True, _):
            return Verification()
        case False:
            return Verification(_NOTHING_SAID)
        case str():
            return Verification((answer,) if answer else ())
        case (False, reasons):
            return Verification(verification_of(reasons).reasons or _NOTHING_SAID)
        case list() | tuple():
            return Verification(tuple(str(each) for each in answer))
        case _:
            raise SettingError(
                f"verify needs to return True, False, a reason, a list of reasons or a pair of "
                f"both; got {answer!r}"
            )
