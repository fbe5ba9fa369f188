"""A dashboard over real HTTP, on a free loopback port."""

from __future__ import annotations

import http.client
import json
import threading
import time
from contextlib import contextmanager

from mulligan.dashboard.access import Access
from mulligan.dashboard.actions import Actions
from mulligan.dashboard.app import make_app
from mulligan.dashboard.runs import RunIndex
from mulligan.dashboard.server import listen, make_server
from mulligan.dashboard.sources import Sources
from mulligan.dead_letters.browse import DeadLetters
from mulligan.stores.open import open_store

TOKEN = "a-token-for-tests-0123456789"


class Dashboard:
    """A running server."""

    def __init__(self, port: int, access: Access, sources: Sources) -> None:
        self.port, self.access, self.sources = port, access, sources
        self.origin = f"http://127.0.0.1:{port}"
        self.link = f"{self.origin}/?token={TOKEN}"

    def ask(self, method: str, path: str, body: object = None, **headers: str):
        """Status, headers and body of an answer; the Host header is ours unless given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            sent = {key.replace("_", "-"): value for key, value in headers.items()}
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            text = answer.read().decode()
            is_json = (answer.getheader("content-type") or "").startswith("application/json")
            return answer.status, dict(answer.getheaders()), json.loads(text) if is_json else text
        finally:
            connection.close()

    def get(self, path: str):
        status, _, body = self.ask("GET", path)
        assert status == 200, body
        return body

    def as_page(self, **changed: str) -> dict[str, str]:
        """The headers that our own page sends with a change."""
        cookie = f"{self.access.cookie}={TOKEN}"
        sent = {"cookie": cookie, "origin": self.origin, "x_csrf_token": self.access.csrf}
        return {**sent, **changed}


@contextmanager
def running(store=None, **options):
    """A dashboard of its own."""
    index, app_module = RunIndex(), options.pop("app", "")
    guards = None if store is None else open_store(store)
    letters = None if guards is None else DeadLetters(guards)
    sources = Sources(index, guards=guards, counts=guards, letters=letters)
    listening = listen(options.pop("host", "127.0.0.1"), 0)
    listening.listen(100)
    host, port = listening.getsockname()[:2]
    access = Access(TOKEN, host=options.pop("shown_host", host), port=port, **options)
    actions = Actions(store or "", app_module)
    app = make_app(sources, actions, access)
    server = make_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    ends_at = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < ends_at
        time.sleep(0.02)
    try:
        yield Dashboard(port, access, sources)
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
        index.close()
        for child in actions._children:  # what a button started and nothing has waited for
            child.wait(20)
