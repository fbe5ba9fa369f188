"""Who may read and change what, over real HTTP."""

from __future__ import annotations

import re

import pytest

from .serving import TOKEN, running

pytestmark = pytest.mark.real

CANCEL = {"run": "nosuchrun"}


def test_on_loopback_the_page_can_be_read_without_a_token(dashboard):
    status, _, page = dashboard.ask("GET", "/")
    assert status == 200
    assert 'name="csrf" content=""' in page  # it may change nothing
    assert dashboard.get("/api/about")["may_change"] is False


def test_the_link_sets_a_cookie_that_other_sites_cannot_use(dashboard):
    status, headers, _ = dashboard.ask("GET", f"/?token={TOKEN}")
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    _, _, page = dashboard.ask("GET", "/", cookie=f"{dashboard.access.cookie}={TOKEN}")
    assert f'content="{dashboard.access.csrf}"' in page
    assert TOKEN not in page


def test_a_wrong_token_opens_nothing(dashboard):
    status, headers, page = dashboard.ask("GET", "/?token=guess")
    assert status == 401
    assert "set-cookie" not in headers
    assert "needs its token" in page


def change(dashboard, **changed):
    sent = {key: value for key, value in dashboard.as_page(**changed).items() if value}
    return dashboard.ask("POST", "/api/actions/cancel", CANCEL, **sent)


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"cookie": ""}, 401),
        ({"cookie": "mulligan_token=guess"}, 401),
        ({"x_csrf_token": ""}, 403),
        ({"x_csrf_token": "guess"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1"}, 403),  # another port is another site
        ({"host": "evil.example"}, 421),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "navigate"}, 403),
    ],
    ids=str,
)
def test_a_change_needs_token_csrf_origin_and_host(dashboard, changed, status):
    found, _, body = change(dashboard, **changed)
    assert found == status
    assert body["error"]


def test_a_change_of_our_own_page_is_made(dashboard):
    status, _, body = change(dashboard)
    assert status == 409  # it got as far as the command
    assert body["said"].startswith("no run 'nosuchrun'")
    assert body["command"] == "mulligan cancel nosuchrun"


def test_a_script_with_the_token_in_a_header_may_change_things(dashboard):
    status, _, _ = dashboard.ask(
        "POST", "/api/actions/cancel", CANCEL, authorization=f"Bearer {TOKEN}"
    )
    assert status == 409
    status, _, _ = dashboard.ask("POST", "/api/actions/cancel", CANCEL, authorization="Bearer no")
    assert status == 401


def test_a_foreign_origin_reads_nothing_either(dashboard):
    status, headers, _ = dashboard.ask("GET", "/api/runs", origin="http://evil.example")
    assert status == 403
    assert not [name for name in headers if name.lower().startswith("access-control")]
    assert dashboard.ask("GET", "/api/runs", host="rebound.example:80")[0] == 421


def test_a_preflight_is_refused(dashboard):
    status, _, _ = dashboard.ask(
        "OPTIONS",
        "/api/actions/cancel",
        origin="http://evil.example",
        access_control_request_method="POST",
    )
    assert status == 403


def test_read_only_changes_nothing_whoever_asks(home):
    with running(is_read_only=True) as dashboard:
        status, _, body = change(dashboard)
        assert (status, body["error"]) == (403, "this dashboard is read-only")
        status, _, _ = dashboard.ask(
            "POST", "/api/actions/cancel", CANCEL, authorization=f"Bearer {TOKEN}"
        )
        assert status == 403


@pytest.mark.parametrize(
    "options",
    [{"shown_host": "10.0.0.5"}, {"is_private": True}, {"names": ("agents.example.com",)}],
)
def test_beyond_loopback_if_private_or_behind_a_proxy_reading_needs_the_token(home, options):
    with running(**options) as dashboard:
        for path in ("/api/runs", "/api/about", "/api/targets", "/api/events", "/static/app.js"):
            assert dashboard.ask("GET", path)[0] == 401, path
        status, _, page = dashboard.ask("GET", "/")
        assert status == 401
        assert "needs its token" in page
        assert dashboard.ask("GET", "/api/runs", authorization=f"Bearer {TOKEN}")[0] == 200


@pytest.mark.parametrize("header", ["x_forwarded_for", "forwarded", "x_real_ip", "via"])
def test_what_a_proxy_passes_on_needs_the_token(dashboard, header):
    assert dashboard.ask("GET", "/api/runs", **{header: "10.0.0.5"})[0] == 401


def test_a_malformed_cookie_of_another_server_does_not_hide_ours(dashboard):
    cookie = f'x={{"a":"b"}}; {dashboard.access.cookie}={TOKEN}'
    assert change(dashboard, cookie=cookie)[0] == change(dashboard)[0] == 409


def test_every_answer_forbids_inline_script_and_framing(dashboard):
    for method, path in (("GET", "/"), ("GET", "/api/runs"), ("GET", "/no"), ("POST", "/")):
        _, headers, _ = dashboard.ask(method, path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_the_page_has_no_inline_script_style_or_foreign_address(dashboard):
    _, _, page = dashboard.ask("GET", "/")
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|https?://", page)


def test_only_files_of_the_page_are_served(dashboard):
    for path in ("/static/../app.py", "/static/..%2fapp.py", "/static/index.html", "/static/no"):
        assert dashboard.ask("GET", path)[0] == 404, path


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 10_000, b'{"run": 3}', b'{"run": ""}'])
def test_a_request_that_cannot_be_meant_is_refused_with_a_reason(dashboard, body):
    status, _, said = dashboard.ask("POST", "/api/actions/cancel", body, **dashboard.as_page())
    assert status == 400
    assert said["error"]


def test_an_action_that_does_not_exist_and_a_long_body_are_refused(dashboard):
    assert dashboard.ask("POST", "/api/actions/rm", CANCEL, **dashboard.as_page())[0] == 400
    long = b'{"run": "' + b"x" * 20_000 + b'"}'
    assert dashboard.ask("POST", "/api/actions/cancel", long, **dashboard.as_page())[0] == 413


def test_a_name_that_looks_like_an_option_stays_a_name(dashboard):
    body = {"run": "--help"}
    status, _, said = dashboard.ask("POST", "/api/actions/cancel", body, **dashboard.as_page())
    assert status == 409
    assert "no run '--help'" in said["said"]
