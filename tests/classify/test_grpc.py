from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from mulligan.classify.exceptions import classify_exception
from mulligan.core.failure import Failure, Kind, Reach

pytestmark = pytest.mark.real
NOW = 1_794_772_800.0
Abort = Callable[[grpc.ServicerContext], None]


class Service:
    """A real gRPC server whose one method fails as it is told."""

    def __init__(self) -> None:
        self.abort: Abort = lambda context: context.abort(grpc.StatusCode.INTERNAL, "x")
        self.pool = ThreadPoolExecutor(2)
        self.server = grpc.server(self.pool)
        self.server.add_generic_rpc_handlers((self._handler(),))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def _handler(self) -> grpc.GenericRpcHandler:
        def fail(request: bytes, context: grpc.ServicerContext) -> bytes:
            self.abort(context)
            return b""

        handler = grpc.unary_unary_rpc_method_handler(fail)
        return grpc.method_handlers_generic_handler("x.Y", {"Z": handler})

    def failure(self, timeout: float = 2) -> Failure:
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            method: Any = channel.unary_unary("/x.Y/Z")
            with pytest.raises(grpc.RpcError) as caught:
                method(b"", timeout=timeout)
        return classify_exception(caught.value, now=NOW)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.server.stop(None).wait(2)
    running.pool.shutdown()


@pytest.mark.parametrize(
    ("code", "words", "kind", "reach"),
    [
        ("INVALID_ARGUMENT", "x", Kind.CLIENT, Reach.ANSWERED),
        ("NOT_FOUND", "x", Kind.CLIENT, Reach.ANSWERED),
        ("UNAUTHENTICATED", "x", Kind.AUTH, Reach.ANSWERED),
        ("PERMISSION_DENIED", "x", Kind.AUTH, Reach.ANSWERED),
        ("RESOURCE_EXHAUSTED", "per minute", Kind.RATE_LIMIT, Reach.ANSWERED),
        ("RESOURCE_EXHAUSTED", "daily quota is used", Kind.QUOTA, Reach.ANSWERED),
        (
            "RESOURCE_EXHAUSTED",
            "Received message larger than max",
            Kind.CONTEXT_LENGTH,
            Reach.ANSWERED,
        ),
        ("FAILED_PRECONDITION", "x", Kind.CONDITIONAL, Reach.ANSWERED),
        ("ABORTED", "x", Kind.CONDITIONAL, Reach.ANSWERED),
        ("INTERNAL", "x", Kind.SERVER, Reach.MAYBE_APPLIED),
        ("UNAVAILABLE", "keepalive watchdog timeout", Kind.SERVER, Reach.MAYBE_APPLIED),
        ("UNAVAILABLE", "the model is overloaded", Kind.OVERLOADED, Reach.ANSWERED),
        ("UNAVAILABLE", "Socket closed", Kind.NETWORK, Reach.MAYBE_APPLIED),
        ("DEADLINE_EXCEEDED", "x", Kind.TIMEOUT, Reach.MAYBE_APPLIED),
        ("UNKNOWN", "x", Kind.UNKNOWN, Reach.MAYBE_APPLIED),
    ],
)
def test_each_status_has_a_kind(service, code, words, kind, reach):
    service.abort = lambda context: context.abort(grpc.StatusCode[code], words)
    failure = service.failure()
    assert (failure.kind, failure.reach, failure.code) == (kind, reach, code)
    assert failure.message == words


@pytest.mark.parametrize("code", ["UNIMPLEMENTED", "DATA_LOSS"])
def test_what_is_not_built_or_lost_is_never_repeated(service, code):
    service.abort = lambda context: context.abort(grpc.StatusCode[code], "x")
    assert service.failure().is_retriable is False


@pytest.mark.parametrize(
    ("millis", "stated", "seconds"), [("1500", True, 1.5), ("-1", False, None), ("0", True, None)]
)
def test_push_back_in_the_trailing_metadata_is_a_statement(service, millis, stated, seconds):
    def abort(context: grpc.ServicerContext) -> None:
        context.set_trailing_metadata((("grpc-retry-pushback-ms", millis),))
        context.abort(grpc.StatusCode.UNAVAILABLE, "x")

    service.abort = abort
    failure = service.failure()
    assert failure.is_retriable is stated
    assert (failure.hint.delay if failure.hint else None) == seconds


def test_retry_info_among_the_packed_details_is_a_hint(service):
    # google.rpc.Status with one Any: RetryInfo of 90.5 s, as protobuf writes it.
    name = b"type.googleapis.com/google.rpc.RetryInfo"
    value = _retry_info(90, 500_000_000)
    packed = bytes([0x0A, len(name)]) + name + bytes([0x12, len(value)]) + value
    details = bytes([0x08, 8, 0x1A, len(packed)]) + packed

    def abort(context: grpc.ServicerContext) -> None:
        context.set_trailing_metadata((("grpc-status-details-bin", details),))
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "x")

    service.abort = abort
    hint = service.failure().hint
    assert hint is not None
    assert (hint.delay, hint.source) == (90.5, "google.rpc.RetryInfo")


def _retry_info(seconds: int, nanos: int) -> bytes:
    duration = b"\x08" + _varint(seconds) + b"\x10" + _varint(nanos)
    return bytes([0x0A, len(duration)]) + duration


def _varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def test_a_slow_answer_may_have_been_applied(service):
    def abort(context: grpc.ServicerContext) -> None:
        import time

        time.sleep(0.3)

    service.abort = abort
    failure = service.failure(timeout=0.1)
    assert (failure.kind, failure.reach) == (Kind.TIMEOUT, Reach.MAYBE_APPLIED)


def test_a_server_that_is_not_there_was_never_asked(nobody):
    with grpc.insecure_channel(nobody.removeprefix("http://")) as channel:
        method: Any = channel.unary_unary("/x.Y/Z")
        with pytest.raises(grpc.RpcError) as caught:
            method(b"", timeout=2)
    failure = classify_exception(caught.value, now=NOW)
    assert (failure.kind, failure.reach) == (Kind.NETWORK, Reach.NEVER_SENT)
