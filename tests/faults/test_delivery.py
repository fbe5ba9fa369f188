from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mulligan.faults.delivery import (
    Close,
    DeliveryPause,
    Hang,
    PlannedResponse,
    Reset,
    Send,
    deliver,
)
from mulligan.faults.fault_names import parse_fault
from mulligan.faults.limits import ClientLimits
from mulligan.faults.rest import Resource
from mulligan.faults.script import Script
from mulligan.faults.service import Service
from mulligan.faults.vendors.base import ResponseStream
from mulligan.faults.wire import LAST_CHUNK, HttpRequest, chunk, read_head

FRAMES = (b"one", b"two", b"three", b"four")
STREAM = PlannedResponse(
    status=200, stream=ResponseStream(frames=FRAMES, middle=2), error_event=b"oops"
)
WHOLE = PlannedResponse(status=200, body=b"0123456789", error_body=b"{}")


def sent(acts) -> bytes:
    return b"".join(act.data for act in acts if isinstance(act, Send))


def body(acts) -> bytes:
    return sent(acts).partition(b"\r\n\r\n")[2]


def shape(acts) -> list[str]:
    return [type(act).__name__ for act in acts]


@pytest.mark.parametrize("answer", [STREAM, WHOLE])
@pytest.mark.parametrize(
    ("fault", "acts"),
    [
        ("reset", (Reset(),)),
        ("lost", (Reset(),)),
        ("close", (Close(),)),
        ("hang", (Hang(), Close())),
        ("hang(5s)", (Hang(5.0), Close())),
    ],
)
def test_before_the_headers_nothing_is_sent(answer, fault, acts):
    assert deliver(parsed(fault), answer, 0.0) == acts


def parsed(text: str):
    name, _, arguments = text.partition("(")
    return parse_fault(name, arguments.removesuffix(")"))


def test_a_good_stream_is_one_chunk_an_event():
    acts = deliver(parse_fault("ok"), STREAM, 0.0)
    assert body(acts) == b"".join(map(chunk, FRAMES)) + LAST_CHUNK
    assert shape(acts) == ["Send"] * 6


@pytest.mark.parametrize(
    ("fault", "after", "ending"),
    [
        ("stall", 2, ["Hang", "Close"]),
        ("stall(1)", 1, ["Hang", "Close"]),
        ("drop", 2, ["DeliveryPause", "Reset"]),
        ("drop(0)", 0, ["DeliveryPause", "Reset"]),
        ("drop(99)", 4, ["DeliveryPause", "Reset"]),
    ],
)
def test_a_stream_breaks_after_as_many_events_as_asked_half_of_them_by_default(
    fault, after, ending
):
    acts = deliver(parsed(fault), STREAM, 0.0)
    assert body(acts) == b"".join(map(chunk, FRAMES[:after]))
    assert shape(acts)[-2:] == ending


def test_a_cut_stream_ends_inside_a_chunk():
    acts = deliver(parse_fault("cut"), STREAM, 0.0)
    assert body(acts) == chunk(b"one") + chunk(b"two") + chunk(b"three")[:5]
    assert acts[-1] == Close()


def test_a_truncated_stream_ends_cleanly_without_its_last_event():
    """E-E7."""
    acts = deliver(parse_fault("truncate"), STREAM, 0.0)
    assert body(acts) == chunk(b"one") + chunk(b"two") + LAST_CHUNK
    assert shape(acts)[-1] == "Send"


def test_an_error_event_stands_inside_a_stream_that_began_well():
    """E-E6."""
    acts = deliver(parse_fault("error-event", "1"), STREAM, 0.0)
    assert body(acts) == chunk(b"one") + chunk(b"oops") + LAST_CHUNK
    assert sent(acts).startswith(b"HTTP/1.1 200 ")


def test_an_error_event_comes_before_the_last_event_at_the_latest():
    acts = deliver(parse_fault("error-event", "99"), STREAM, 0.0)
    assert body(acts) == b"".join(map(chunk, FRAMES[:3])) + chunk(b"oops") + LAST_CHUNK


@pytest.mark.parametrize("after", [0, 1, 99])
def test_an_error_inside_geminis_array_leaves_it_an_array(after):
    script = Script.parse(f"error-event({after})")
    service = Service(script=script, limits=ClientLimits(), resource=Resource(), now=0.0)
    head = read_head(b"POST /v1beta/models/m:streamGenerateContent HTTP/1.0")
    got = json.loads(body(service.handle(HttpRequest(head=head), 0.0).acts))
    assert [next(iter(each)) for each in got].index("error") == len(got) - 1
    assert after == 99 or len(got) == after + 1


@pytest.mark.parametrize(
    ("fault", "said", "last"),
    [
        ("ok", b"onetwothreefour", Close()),
        ("truncate", b"onetwo", Close()),
        ("cut", b"onetwoth", Close()),
        ("error-event(1)", b"oneoops", Close()),
        ("drip", b"onetwothreefour", Close()),
        ("drop", b"onetwo", Reset()),
    ],
)
def test_who_knows_no_chunks_reads_until_the_connection_ends(fault, said, last):
    acts = deliver(parsed(fault), replace(STREAM, is_chunked=False), 0.0)
    assert body(acts) == said
    assert acts[-1] == last
    assert b"transfer-encoding" not in sent(acts)
    assert b"connection: close" in sent(acts)


def test_a_drip_waits_before_every_event():
    acts = deliver(parse_fault("drip", "0.2s"), STREAM, 0.0)
    assert acts.count(DeliveryPause(0.2)) == 4
    assert body(acts) == b"".join(map(chunk, FRAMES)) + LAST_CHUNK


@pytest.mark.parametrize("fault", ["stall", "drop", "cut"])
def test_a_whole_answer_breaks_in_the_middle_of_its_body(fault):
    acts = deliver(parse_fault(fault), WHOLE, 0.0)
    assert body(acts) == b"01234"
    assert b"content-length: 10" in sent(acts)


def test_a_truncated_whole_answer_states_no_length():
    acts = deliver(parse_fault("truncate"), WHOLE, 0.0)
    assert body(acts) == b"01234"
    assert b"content-length" not in sent(acts)


def test_bad_json_has_the_right_length():
    acts = deliver(parse_fault("badjson"), WHOLE, 0.0)
    assert body(acts) == b"01234"
    assert b"content-length: 5" in sent(acts)


def test_a_delay_comes_before_anything_is_sent():
    assert deliver(parse_fault("ok", "delay=0.2s"), WHOLE, 0.0)[0] == DeliveryPause(0.2)


def test_a_head_request_gets_no_body():
    answer = PlannedResponse(status=200, body=b"{}", is_bodiless=True)
    assert body(deliver(parse_fault("ok"), answer, 0.0)) == b""
