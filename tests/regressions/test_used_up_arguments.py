"""A retry sent an empty body.

The first attempt had read the file or the iterator; the second sent nothing and succeeded. Then
the check was too eager, and stopped calls whose arguments had not been touched.
"""

# Wrong types are the point of some of these.
# mypy: ignore-errors

from __future__ import annotations

import io
import itertools

import pytest

import mulligan
from mulligan.testing import Scripted, status_error


def test_a_file_that_was_read_is_not_sent_again_empty(virtual_clock, tmp_path):
    """The second request had an empty body, and the server accepted it."""
    path = tmp_path / "body"
    path.write_text("abc")
    sent = []

    def upload(file):
        sent.append(file.read())
        raise status_error(503)

    with path.open() as file, pytest.raises(Exception, match="status 503"):
        mulligan.call(upload, file)
    assert sent == ["abc"]


@pytest.mark.parametrize(
    "body",
    [
        {"files": {"f": io.BytesIO(b"data")}},
        {"data": [("f", ("name", io.BytesIO(b"data")))]},
        {"data": io.StringIO("data")},
    ],
)
def test_a_body_is_not_sent_again_empty_wherever_it_stands(virtual_clock, body):
    """Only arguments themselves were looked at, not what they contain."""
    sent = []

    def post(**parts):
        for value in parts.values():
            if isinstance(value, dict):
                sent.append(value["f"].read())
            elif isinstance(value, list):
                sent.append(value[0][1][1].read())
            else:
                sent.append(value.read())
        raise status_error(503)

    with pytest.raises(Exception, match="status 503"):
        mulligan.call(post, **body)
    assert len(sent) == 1


def test_an_argument_that_was_never_touched_is_no_reason_to_stop(virtual_clock):
    """A generator that had not been started stopped the retry."""
    chunks = (each for each in "abc")
    tries = []

    def upload(chunks):
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionRefusedError
        return list(chunks)

    assert mulligan.call(upload, chunks) == ["a", "b", "c"]


def test_what_never_ends_is_never_used_up(virtual_clock):
    """`itertools.count()` was taken for used up."""
    assert mulligan.call(Scripted(status_error(529), "ok"), itertools.count()) == "ok"
