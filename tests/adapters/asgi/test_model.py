"""Random requests against the middleware and against a model of ten lines."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mulligan.adapters.asgi.kept_response import is_in_doubt, is_kept

requests = st.fixed_dictionaries(
    {
        "key": st.sampled_from(['"a"', '"b"', "a"]),
        "caller": st.sampled_from(["ada", "bob"]),
        "method": st.sampled_from(["POST", "PATCH", "PUT"]),
        "path": st.sampled_from(["/orders", "/orders/1"]),
        "body": st.sampled_from([b'{"n": 1}', b'{"n":1.0}', b'{"n": 2}']),
    }
)
outcomes = st.sampled_from([200, 201, 302, 400, 404, 422, 401, 409, 429, 500, 503, "raise"])


class App:
    """Answers with the next outcome, and counts."""

    def __init__(self) -> None:
        self.runs = 0
        self.outcome: Any = 200

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.runs += 1
        await receive()
        if self.outcome == "raise":
            raise RuntimeError(self.outcome)
        await send({"type": "http.response.start", "status": self.outcome, "headers": []})
        await send({"type": "http.response.body", "body": b"%d" % self.runs})


class Model:
    """What a client of the middleware may rely on, without leases and streams."""

    def __init__(self) -> None:
        self.kept: dict[Any, tuple[float, int, bytes]] = {}  # payload, status, body
        self.doubt: dict[Any, float] = {}  # payload of what may have been applied
        self.runs = 0

    def answer(self, asked: dict[str, Any], outcome: Any) -> tuple[Any, bytes | None]:
        place = (asked["key"].strip('"'), asked["caller"], asked["method"], asked["path"])
        payload = json.loads(asked["body"])["n"]
        if asked["method"] != "PUT":
            known = self.kept[place][0] if place in self.kept else self.doubt.get(place, payload)
            if known != payload:
                return 422, None
            if place in self.kept:
                return self.kept[place][1:]
        self.runs += 1
        body = b"%d" % self.runs
        if asked["method"] != "PUT":
            self.doubt.pop(place, None)
            if outcome == "raise" or is_in_doubt(outcome):
                self.doubt[place] = payload
            elif is_kept(outcome):
                self.kept[place] = (payload, outcome, body)
        return (None, b"") if outcome == "raise" else (outcome, body)


@given(st.lists(st.tuples(requests, outcomes), max_size=25), st.booleans())
def test_random_requests_get_what_the_model_says(asgi, script, in_pieces):
    async def story() -> None:
        app, model = App(), Model()
        guarded = asgi.guarded(app)
        for asked, outcome in script:
            app.outcome = outcome
            status, body = model.answer(asked, outcome)
            pieces = {**asked, "body": [bytes([each]) for each in asked["body"]]}
            try:
                answer = await asgi.ask(guarded, **(pieces if in_pieces else asked))
            except RuntimeError:
                assert status is None
            else:
                assert answer.status == status
                assert body is None or answer.body == body
            assert app.runs == model.runs

    asyncio.run(story())
