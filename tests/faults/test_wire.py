from __future__ import annotations

import contextlib
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.faults.wire import BODY_LIMIT, BadRequest, HttpRequest, chunk, head, read_head


def test_a_head_is_read():
    found = read_head(
        b"POST /v1/mess%61ges?beta=true HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: 12"
    )
    assert (found.method, found.path, found.query) == ("POST", "/v1/messages", "beta=true")
    assert (found.length, found.keeps_alive) == (12, True)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", 400),
        (b"GET /", 400),
        (b"GET / HTTP/2", 400),
        (b"GET / HTTP/1.1\r\nno colon", 400),
        (b"GET / HTTP/1.1\r\n folded: x", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: -1", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 1_0", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip", 400),
        (b"GET invoices HTTP/1.1", 400),
        (b"GET * HTTP/1.1", 400),
    ],
)
def test_what_is_no_request_is_refused(data, status):
    with pytest.raises(BadRequest) as caught:
        read_head(data)
    assert caught.value.status == status


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data):
    with contextlib.suppress(BadRequest):
        assert read_head(data).method


@pytest.mark.parametrize("encoding", ["", "gzip", "br"])
def test_a_body_that_is_no_json_object_reads_as_an_empty_one(encoding):
    seen = read_head(f"POST / HTTP/1.1\r\ncontent-encoding: {encoding}".encode())
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    for body in (b"", b"[]", b"{", b"\xff\xfe", b"[" * 200_000, deep):
        assert HttpRequest(head=seen, body=body).json == {}


def test_a_compressed_body_is_read():
    seen = read_head(b"POST / HTTP/1.1\r\ncontent-encoding: gzip")
    assert HttpRequest(head=seen, body=gzip.compress(b'{"a": 1}')).json == {"a": 1}


def test_half_a_compressed_body_reads_as_an_empty_one():
    seen = read_head(b"POST / HTTP/1.1\r\ncontent-encoding: gzip")
    assert HttpRequest(head=seen, body=gzip.compress(b'{"a": 1}')[:-12]).json == {}


def test_a_body_that_grows_without_measure_is_not_unpacked():
    seen = read_head(b"POST / HTTP/1.1\r\ncontent-encoding: gzip")
    bomb = gzip.compress(b" " * (BODY_LIMIT + 1))
    with pytest.raises(BadRequest, match=f"^unpacked, the body has more than {BODY_LIMIT} bytes$"):
        assert HttpRequest(head=seen, body=bomb).json


def test_a_body_is_parsed_once():
    request = HttpRequest(head=read_head(b"POST / HTTP/1.1"), body=b'{"a": 1}')
    assert request.json is request.json


@pytest.mark.parametrize(
    "line",
    [
        b"x-api-key: mulligan-a",
        b"x-goog-api-key: mulligan-a",
        b"authorization: Bearer mulligan-a",
    ],
)
def test_the_key_is_found_where_each_vendors_clients_put_it(line):
    assert HttpRequest(head=read_head(b"GET / HTTP/1.1\r\n" + line)).key == "mulligan-a"


def test_the_key_is_found_in_the_query():
    assert HttpRequest(head=read_head(b"GET /?key=mulligan-a HTTP/1.1")).key == "mulligan-a"


def test_a_header_cannot_be_split_by_what_a_script_says():
    data = head(429, {"retry-after": "1\r\nx-evil: yes"}, 0.0)
    assert b"retry-after: 1x-evil: yes\r\n" in data


def test_an_unknown_status_is_sent_all_the_same():
    assert head(529, {}, 0.0).startswith(b"HTTP/1.1 529 ")


@given(st.binary(max_size=100))
def test_a_chunk_says_how_long_it_is(data):
    size, _, rest = chunk(data).partition(b"\r\n")
    assert int(size, 16) == len(data)
    assert rest == data + b"\r\n"
