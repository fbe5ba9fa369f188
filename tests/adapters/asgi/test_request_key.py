from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.adapters.asgi.kept_response import is_kept, kept, messages
from mulligan.adapters.asgi.request_key import (
    BadKey,
    key_of,
    payload_fingerprint,
    request_place,
)

printable = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=255)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


def header(value):
    return [(b"Idempotency-Key", value)]


def fingerprint(body, kind=b"application/json"):
    return payload_fingerprint([(b"content-type", kind)], b"", body)


@given(printable)
def test_every_string_comes_back_as_it_was_written(key):
    quoted = '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
    assert key_of(header(quoted.encode())) == key


@given(st.binary(max_size=300))
def test_whatever_the_header_is_the_answer_is_a_key_or_bad_key(value):
    for is_strict in (False, True):
        try:
            key = key_of(header(value), is_strict=is_strict)
        except BadKey as bad:
            assert str(bad)  # noqa: PT017 -- both are right
        else:
            assert key
            assert len(key) <= 255


@given(values)
def test_json_counts_by_what_it_means(value):
    told = [json.dumps(value, indent=1), json.dumps(value, sort_keys=True, ensure_ascii=False)]
    assert len({fingerprint(each.encode()) for each in told}) == 1


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_other_bytes_are_another_payload(one, other):
    same = fingerprint(one, b"text/plain") == fingerprint(other, b"text/plain")
    assert same == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a": 1, "a": 2}', b'{"a": 3, "a": 2}'),  # readers differ on which one counts
        (b"NaN", b" NaN"),
        (b"{", b"{ "),
        (b'"1"', b"1"),
        (b"true", b"1"),
        (b"[" * 70 + b"]" * 70, b"[" * 70 + b" " + b"]" * 70),  # too deep to be compared by meaning
        (b"9" * 5000, b"9" * 5001),
        (b"1e999999999", b"2e999999999"),
    ],
)
def test_what_readers_may_take_differently_is_not_the_same(one, other):
    assert fingerprint(one) != fingerprint(other)


def test_a_compressed_body_counts_by_its_bytes():
    coded = [(b"content-type", b"application/json"), (b"content-encoding", b"gzip")]
    assert payload_fingerprint(coded, b"", b"[1]") != payload_fingerprint(coded, b"", b"[ 1]")


def multipart(boundary, part=b"file"):
    body = b'--%b\r\nContent-Disposition: form-data; name="f"\r\n\r\n%b\r\n--%b--\r\n'
    kind = b"multipart/form-data; boundary=" + boundary
    return fingerprint(body % (boundary.strip(b'"'), part, boundary.strip(b'"')), kind)


def test_the_boundary_of_a_multipart_body_is_drawn_for_every_request():
    assert multipart(b"abc") == multipart(b"xyz") == multipart(b'"q r"')
    assert multipart(b"abc") != multipart(b"abc", b"other")
    assert multipart(b"abc", b"--x") != multipart(b"abc", b"--")


@given(*[st.text(min_size=1, max_size=8)] * 6)
def test_two_requests_share_a_place_only_if_all_of_it_is_the_same(a, b, c, d, e, f):
    one = request_place(a, b, "POST", c.encode("utf-8", "surrogatepass"))
    other = request_place(d, e, "POST", f.encode("utf-8", "surrogatepass"))
    assert (one == other) == ((a, b, c) == (d, e, f))


@given(st.binary(), st.lists(st.tuples(st.just(b"x-a"), st.binary())), st.booleans())
def test_a_kept_response_is_sent_as_it_was(body, headers, has_trailers):
    start = {"status": 201, "headers": headers}
    value = kept(start, body, [(b"digest", b"1")])
    first, second, *rest = messages(value, has_trailers=has_trailers)
    assert first["headers"] == [*headers, (b"idempotent-replayed", b"true")]
    assert (first["status"], second["body"]) == (201, body)
    assert [each["headers"] for each in rest] == [[(b"digest", b"1")]] * has_trailers


def test_cookies_and_what_belongs_to_the_connection_are_not_kept():
    own = [(b"Set-Cookie", b"sid=1"), (b"Connection", b"close"), (b"date", b"now")]
    value = kept({"status": 200, "headers": [*own, (b"etag", b"1")]}, b"")
    assert messages(value, has_trailers=False)[0]["headers"][:-1] == [(b"etag", b"1")]
    assert "sid" not in value


def test_statuses_that_are_kept():
    assert [status for status in range(200, 600) if is_kept(status)] == [
        *range(200, 400),
        *(400, 404, 422),
    ]
