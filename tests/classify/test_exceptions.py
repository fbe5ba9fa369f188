from __future__ import annotations

import asyncio
import errno
import http.client
import json
import socket
import ssl
import subprocess
import urllib.error
from email.message import Message
from math import isfinite
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.classify.exceptions import classify_exception, codes_of
from mulligan.core.failure import Failure, Kind, Reach, Retryability
from mulligan.errors import CircuitOpen, FailedAnswer, LimitReached, SettingError

NOW = 1_794_772_800.0


def read(error: BaseException) -> Failure:
    return classify_exception(error, now=NOW)


def raised(error: BaseException, *, behind: BaseException, cause: bool) -> BaseException:
    """`error` as it is when it was raised while, or because, `behind` was handled."""
    error.__context__ = behind
    if cause:
        error.__cause__ = behind
    return error


# --- Python's own: DESIGN "Known by type", R-C6, R-C8


@pytest.mark.parametrize(
    ("error", "kind", "reach"),
    [
        (ConnectionRefusedError(), Kind.NETWORK, Reach.NEVER_SENT),
        (ConnectionResetError(), Kind.NETWORK, Reach.MAYBE_APPLIED),
        (ConnectionAbortedError(), Kind.NETWORK, Reach.MAYBE_APPLIED),
        (BrokenPipeError(), Kind.NETWORK, Reach.MAYBE_APPLIED),
        (ConnectionError("x"), Kind.NETWORK, Reach.MAYBE_APPLIED),
        (TimeoutError(), Kind.TIMEOUT, Reach.MAYBE_APPLIED),
        (OSError(errno.EPIPE, "x"), Kind.NETWORK, Reach.MAYBE_APPLIED),
        (OSError(errno.ECONNRESET, "x"), Kind.NETWORK, Reach.MAYBE_APPLIED),
        (OSError(errno.ETIMEDOUT, "x"), Kind.TIMEOUT, Reach.MAYBE_APPLIED),
        (OSError(errno.ECONNREFUSED, "x"), Kind.NETWORK, Reach.NEVER_SENT),
        (OSError(errno.ENETUNREACH, "x"), Kind.NETWORK, Reach.NEVER_SENT),
        (OSError(errno.EHOSTUNREACH, "x"), Kind.NETWORK, Reach.NEVER_SENT),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), Kind.NETWORK, Reach.NEVER_SENT),
        (http.client.RemoteDisconnected("x"), Kind.NETWORK, Reach.MAYBE_APPLIED),
        (http.client.IncompleteRead(b"x"), Kind.NETWORK, Reach.MAYBE_APPLIED),
        (asyncio.IncompleteReadError(b"", 5), Kind.NETWORK, Reach.MAYBE_APPLIED),
        (urllib.error.URLError(ConnectionRefusedError()), Kind.NETWORK, Reach.NEVER_SENT),
        (urllib.error.URLError(TimeoutError()), Kind.TIMEOUT, Reach.MAYBE_APPLIED),
        (subprocess.TimeoutExpired("x", 5), Kind.TIMEOUT, Reach.MAYBE_APPLIED),
        (ssl.SSLEOFError("x"), Kind.NETWORK, Reach.MAYBE_APPLIED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_errors_of_the_connection_are_known_by_type(error, kind, reach):
    failure = read(error)
    assert (failure.kind, failure.reach) == (kind, reach)
    assert failure.retryability is Retryability.RETRYABLE


def test_an_errno_is_handed_on_by_name():
    assert read(OSError(errno.ECONNRESET, "x")).code == "ECONNRESET"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        TypeError("x"),
        KeyError("x"),
        ZeroDivisionError(),
        RuntimeError("Connection reset by peer"),
        Exception("503 Service Unavailable"),
        OSError(errno.ENOSPC, "disk full"),
        FileNotFoundError(),
        PermissionError(),
        socket.gaierror(socket.EAI_NONAME, "no such host"),
        json.JSONDecodeError("x", "y", 0),
        StopIteration(),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_everything_else_is_unknown_and_not_repeated(error):  # R-C3, R-C6
    failure = read(error)
    assert failure.kind is Kind.UNKNOWN
    assert failure.retryability is Retryability.NON_RETRYABLE
    assert failure.reach is Reach.MAYBE_APPLIED


def test_an_untrusted_certificate_is_never_repeated():  # E-G4
    failure = read(ssl.SSLCertVerificationError(1, "self-signed certificate"))
    assert (failure.kind, failure.is_retriable) == (Kind.CLIENT, False)


def test_a_name_alone_says_nothing():
    class ReadTimeout(Exception):  # a stranger with a famous name
        pass

    class APIConnectionError(Exception):
        pass

    assert read(ReadTimeout()).kind is Kind.UNKNOWN
    assert read(APIConnectionError()).kind is Kind.UNKNOWN


def test_a_subclass_of_a_known_class_is_known():
    class Gone(ConnectionRefusedError):
        pass

    assert read(Gone()).reach is Reach.NEVER_SENT


# --- by shape


class Shaped(Exception):
    """A client's error that nobody has heard of."""

    def __init__(self, message: str = "", /, **fields: object) -> None:
        super().__init__(message)
        self.__dict__.update(fields)


def response(status: int, body: object = b"", **headers: str) -> SimpleNamespace:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return SimpleNamespace(status_code=status, headers=names, _content=body)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"status_code": 503}, Kind.SERVER),
        ({"status": 429}, Kind.RATE_LIMIT),
        ({"status_code": "404"}, Kind.CLIENT),
        ({"status_code": http.HTTPStatus.UNAUTHORIZED}, Kind.AUTH),
        ({"code": 529, "headers": {}}, Kind.OVERLOADED),
        ({"code": 503, "details": {"error": {"status": "UNAVAILABLE"}}}, Kind.OVERLOADED),
        ({"response": response(500)}, Kind.SERVER),
        ({"response": SimpleNamespace(status=502)}, Kind.SERVER),
        ({"status_code": 429, "body": {"error": {"code": "insufficient_quota"}}}, Kind.BILLING),
        ({"status_code": 200, "type": "overloaded_error"}, Kind.OVERLOADED),
        ({"code": "rate_limit_exceeded"}, Kind.RATE_LIMIT),
        ({"code": 429}, Kind.UNKNOWN),  # a number called code may be anything
        ({"code": "internal"}, Kind.UNKNOWN),  # too vague without a status
        ({"status_code": 200}, Kind.UNKNOWN),
        ({"status_code": True}, Kind.UNKNOWN),
        ({"status_code": 99999}, Kind.UNKNOWN),
        ({"status": "done"}, Kind.UNKNOWN),
    ],
)
def test_a_stranger_is_known_by_its_shape(fields, kind):
    assert read(Shaped("x", **fields)).kind is kind


def test_a_class_that_claims_to_be_pythons_own_is_read_by_its_shape():
    made: dict[str, type[Exception]] = {}
    exec("class Odd(Exception):\n    status_code = 429", {}, made)  # noqa: S102 -- no __name__
    assert made["Odd"].__module__ == "builtins"
    assert read(made["Odd"]()).kind is Kind.RATE_LIMIT


def test_headers_of_the_response_give_the_hint():
    failure = read(Shaped("x", response=response(429, retry_after="7")))
    assert failure.hint is not None
    assert failure.hint.delay == 7


def test_the_bodys_message_is_preferred_to_the_exceptions_own():
    body = json.dumps({"error": {"message": "the vendor's sentence"}}).encode()
    assert (
        read(Shaped("Error code: 500", response=response(500, body))).message
        == "the vendor's sentence"
    )
    assert read(Shaped("Error code: 500", status_code=500)).message == "Error code: 500"
    assert read(Shaped("", status_code=500)).message.endswith(".Shaped")


def test_a_falsy_response_is_still_a_response():  # E-G5
    class Falsy(SimpleNamespace):
        def __bool__(self) -> bool:
            return False

    assert read(Shaped("x", response=Falsy(status_code=403, headers={}))).kind is Kind.AUTH


def test_an_unread_stream_stays_unread():
    class Streaming:
        status_code = 503
        headers: dict[str, str] = {}  # noqa: RUF012

        @property
        def content(self) -> bytes:
            raise AssertionError("somebody read the stream")

        text = data = body = content

        def json(self) -> object:
            raise AssertionError("somebody read the stream")

        read = json

    assert read(Shaped("x", response=Streaming())).kind is Kind.SERVER


def test_urllibs_error_is_known_by_its_code():
    headers = Message()
    headers["Retry-After"] = "11"
    error = urllib.error.HTTPError("http://x.example", 429, "Too Many", headers, None)
    failure = read(error)
    error.close()
    assert failure.kind is Kind.RATE_LIMIT
    assert failure.hint is not None
    assert failure.hint.delay == 11


def test_botocores_dictionary_is_read():
    answer = {
        "Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"},
        "ResponseMetadata": {"HTTPStatusCode": 400, "HTTPHeaders": {"retry-after": "3"}},
    }
    failure = read(Shaped("x", response=answer))
    assert (failure.kind, failure.status) == (Kind.RATE_LIMIT, 400)
    assert failure.message == "Rate exceeded"


# --- what stands behind: E-G6


def test_a_cause_is_followed():
    failure = read(raised(RuntimeError("x"), behind=ConnectionResetError(), cause=True))
    assert failure.kind is Kind.NETWORK
    assert failure.because == "ConnectionResetError, behind RuntimeError"


def test_a_context_is_followed_only_from_an_unknown_error():
    assert read(raised(RuntimeError("x"), behind=TimeoutError(), cause=False)).kind is Kind.TIMEOUT
    known = raised(ConnectionRefusedError(), behind=TimeoutError(), cause=False)
    assert read(known).kind is Kind.NETWORK


def test_a_mistake_in_the_program_is_not_excused_by_what_it_was_handling():
    assert read(raised(TypeError("x"), behind=TimeoutError(), cause=False)).kind is Kind.UNKNOWN
    assert read(raised(ValueError("x"), behind=TimeoutError(), cause=True)).kind is Kind.TIMEOUT


def test_a_suppressed_context_is_not_followed():
    error = RuntimeError("x")
    error.__context__ = TimeoutError()
    error.__suppress_context__ = True
    assert read(error).kind is Kind.UNKNOWN


def test_an_interrupt_behind_an_error_is_no_failure():
    error = raised(RuntimeError("x"), behind=KeyboardInterrupt(), cause=True)
    assert read(error).kind is Kind.UNKNOWN


def test_circles_end():
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert read(first).kind is Kind.UNKNOWN
    lost = ConnectionError("c")
    lost.__cause__ = lost
    assert read(lost).kind is Kind.NETWORK


def test_a_chain_of_thousands_ends():
    error: Exception = TimeoutError()
    for _ in range(5000):
        outer = RuntimeError("x")
        outer.__cause__ = error
        error = outer
    assert read(error).kind is Kind.UNKNOWN


def test_the_worst_of_a_group_speaks_for_it():
    lost = ConnectionResetError()
    refused = ConnectionRefusedError()
    assert read(ExceptionGroup("x", [refused, lost])).kind is Kind.NETWORK
    assert read(ExceptionGroup("x", [lost, ValueError()])).kind is Kind.UNKNOWN
    assert read(ExceptionGroup("x", [lost, Shaped("x", status_code=401)])).kind is Kind.AUTH
    nested = ExceptionGroup("x", [ExceptionGroup("y", [TimeoutError()]), lost])
    assert read(nested).retryability is Retryability.RETRYABLE


def test_what_else_ran_in_a_group_may_have_been_applied():
    refused = ConnectionRefusedError()
    assert read(ExceptionGroup("x", [refused, refused])).reach is Reach.MAYBE_APPLIED
    assert read(raised(ConnectionError(), behind=refused, cause=True)).reach is Reach.NEVER_SENT


def test_what_a_handler_did_before_it_failed_may_have_been_applied():
    refused = ConnectionRefusedError()
    handled = read(raised(RuntimeError("x"), behind=refused, cause=False))
    assert (handled.kind, handled.reach) == (Kind.NETWORK, Reach.MAYBE_APPLIED)
    meant = read(raised(RuntimeError("x"), behind=refused, cause=True))
    assert meant.reach is Reach.MAYBE_APPLIED


def test_the_longest_wait_of_a_group_is_kept():
    short = Shaped("x", response=response(429, retry_after="3"))
    long = Shaped("x", response=response(429, retry_after="30"))
    failure = read(ExceptionGroup("x", [short, long, TimeoutError()]))
    assert failure.kind is Kind.RATE_LIMIT
    assert failure.hint is not None
    assert failure.hint.delay == 30


def test_a_cancelled_member_makes_a_group_no_failure():
    group = BaseExceptionGroup("x", [TimeoutError(), asyncio.CancelledError()])
    assert read(group).kind is Kind.UNKNOWN


# --- Mulligan's own


def test_an_open_circuit_is_its_own_kind():  # R-K6
    failure = read(CircuitOpen("billing", 12.5, "5 failures in a row"))
    assert (failure.kind, failure.reach) == (Kind.CIRCUIT_OPEN, Reach.NEVER_SENT)
    assert failure.hint is not None
    assert failure.hint.delay == 12.5
    assert failure.retryability is Retryability.NON_RETRYABLE


@pytest.mark.parametrize(("wait", "kind"), [(90, Kind.RATE_LIMIT), (7200, Kind.QUOTA)])
def test_a_reached_limit_says_when(wait, kind):
    failure = read(LimitReached("anthropic", NOW + wait, "requests"))
    assert failure.kind is kind
    assert failure.hint is not None
    assert failure.hint.delay == wait


def test_a_failed_answer_is_its_failure():
    failure = Failure(kind=Kind.BAD_ANSWER, because="empty")
    assert read(FailedAnswer(failure, "")) is failure


def test_a_setting_of_ours_is_unknown():
    assert read(SettingError("x")).kind is Kind.UNKNOWN


# --- nothing makes it raise


class Booby(Exception):
    """Every look at it explodes."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Trapped(Exception):
    """Some looks at it explode; what is left must still count."""

    status_code = 503

    @property
    def response(self) -> object:
        raise RuntimeError("response")

    @property
    def message(self) -> str:
        raise KeyError("message")

    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_error_that_explodes_when_looked_at_is_unknown():
    assert read(Booby()).kind is Kind.UNKNOWN


def test_a_property_that_raises_does_not_hide_the_others():
    failure = read(Trapped())
    assert failure.kind is Kind.SERVER
    assert failure.message.endswith(".Trapped")


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=9), inner, max_size=3)
        | st.builds(
            lambda fields: SimpleNamespace(**fields), st.fixed_dictionaries({"headers": inner})
        )
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [
        *("status_code", "status", "code", "response", "headers", "body", "details", "message"),
        *("type", "reason", "errno", "exceptions", "args"),
    ]
)


@given(fields=st.dictionaries(NAMES.filter(lambda name: name != "args"), ANYTHING), text=st.text())
def test_no_error_makes_it_raise(fields, text):
    failure = read(Shaped(text, **fields))
    assert failure.because
    assert len(failure.message) <= 500
    assert failure.hint is None or (isfinite(failure.hint.delay) and failure.hint.delay > 0)


def test_codes_are_handed_out_for_whoever_has_rules_about_them():
    error = Shaped("x", code="ORDER_LOCKED", body={"error": {"type": "conflict", "code": "E17"}})
    assert codes_of(error) == ("order_locked", "conflict", "e17")


def test_secrets_in_messages_are_masked():
    failure = read(ConnectionError("proxy http://joe:hunter2secret@proxy.example failed"))
    assert "hunter2secret" not in failure.message
