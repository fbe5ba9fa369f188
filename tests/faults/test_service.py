"""The provider without a socket: requests and times go in, deliveries come out."""

from __future__ import annotations

import json
import re
from datetime import datetime

import pytest

from mulligan.faults.delivery import ClosePort, DeliveryPause, Reset, Send
from mulligan.faults.fault_names import MENU, STATUSES
from mulligan.faults.file import read_toml
from mulligan.faults.limits import ClientLimits
from mulligan.faults.rest import Resource
from mulligan.faults.script import Script
from mulligan.faults.service import Handled, Service
from mulligan.faults.wire import HttpRequest, read_head

START = 1_794_776_400.0
PATHS = {
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/gemini-2.5-flash:generateContent",
    "rest": "/invoices",
}


class World:
    """A service, a clock that is set by hand, and what came back."""

    def __init__(
        self, script: str = "ok", *, limits: ClientLimits | None = None, seed: int = 0
    ) -> None:
        self.now = START
        self.began_at: float | None = None
        self.service = Service(
            script=Script.parse(script),
            limits=limits or ClientLimits(),
            resource=Resource(),
            now=START,
            seed=seed,
        )

    def ask(self, path="/v1/messages", body=None, *, method="POST", key="mulligan-a", **headers):
        lines = [f"{method} {path} HTTP/1.1", f"x-api-key: {key}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        data = json.dumps(body or {"model": "m", "messages": ["hi"]}).encode()
        request = HttpRequest(head=read_head("\r\n".join(lines).encode()), body=data)
        return Got(self.service.handle(request, self.now, began_at=self.began_at))

    @property
    def totals(self):
        return self.service.ledger.totals


class Got:
    """A delivery, read back."""

    def __init__(self, handled: Handled) -> None:
        self.entry, self.acts = handled.entry, handled.acts
        data = b"".join(act.data for act in handled.acts if isinstance(act, Send))
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1]) if data else None
        self.headers = dict(line.split(": ", 1) for line in lines[1:])

    @property
    def json(self):
        return json.loads(self.body)


@pytest.mark.parametrize("vendor", PATHS)
def test_every_request_takes_one_step(vendor):
    world = World("429x2,503,ok")
    got = [world.ask(PATHS[vendor]).status for _ in range(4)]
    assert got == [429, 429, 503, 201 if vendor == "rest" else 200]
    assert {entry.vendor for entry in world.service.ledger.entries} == {vendor}


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/v1/messages/count_tokens", "POST", 200),
        ("/v1beta/models/m:countTokens", "POST", 200),
        ("/v1/responses/input_tokens", "POST", 200),
        ("/v1/models", "GET", 200),
        ("/v1/models/gpt-5", "GET", 200),
        ("/v1beta/models/gemini-2.5-flash", "GET", 200),
        ("/", "HEAD", 200),
        ("/api/event_logging/batch", "POST", 404),
        ("/v1/messages", "GET", 404),
    ],
)
def test_what_programs_ask_besides_takes_no_step_and_is_not_counted(path, method, status):
    world = World("429x1,ok")
    assert world.ask(path, method=method).status == status
    assert world.totals.requests == 0
    assert world.ask().status == 429


@pytest.mark.parametrize(
    ("rule", "path", "method"),
    [
        ("/v1/models", "/v1/models", "GET"),
        ("/*/models", "/v1/models", "GET"),
        ("/v1/messages/count_tokens", "/v1/messages/count_tokens", "POST"),
        ("/v1beta/models/*:countTokens", "/v1beta/models/m:countTokens", "POST"),
        ("GET /v1/*", "/v1/models", "GET"),
        ("@a /orders", "/orders", "POST"),
        ("@* /orders/*", "/orders/7", "GET"),
    ],
)
def test_a_rule_that_names_what_programs_ask_besides_decides_about_it(rule, path, method):
    world = World(f"{rule} -> 503,ok; 418")
    assert world.ask(path, method=method).status == 503
    found = world.ask(path, method=method)
    assert found.status == 200
    assert found.entry.outcome == "ok"
    assert world.totals.requests == 2
    assert world.ask().status == 418


def test_a_path_that_belongs_to_nobody_gets_what_the_script_says():
    world = World("503,reset,ok")
    assert world.ask("/charge", method="POST").status == 503
    assert world.ask("/charge", method="POST").entry.outcome == "reset"
    found = world.ask("/charge", method="POST")
    assert found.json == {"ok": True, "method": "POST", "path": "/charge"}
    assert world.totals.requests == 3


@pytest.mark.parametrize("rule", ["/v1/*", "/*", "POST", "@a", "@*", ""])
def test_a_rule_for_prompts_leaves_alone_what_programs_ask_besides(rule):
    world = World(f"{rule} -> 503" if rule else "503")
    assert world.ask("/v1/models", method="GET").status == 200
    assert world.ask("/v1/messages/count_tokens").status == 200
    assert world.ask().status == 503


def test_a_refusal_of_what_is_asked_besides_has_its_vendors_words():
    world = World("/*/models -> 529")
    said = world.ask("/v1/models", method="GET", anthropic_version="2023-06-01").json
    assert said["error"]["type"] == "overloaded_error"
    assert "param" in world.ask("/v1/models", method="GET").json["error"]
    assert world.ask("/v1beta/models", method="GET").json["error"]["code"] == 529


@pytest.mark.parametrize(
    ("vendor", "expected"),
    [
        ("anthropic", {"plan": 429, "billing": 400, "context": 400, "model": 404, "policy": 400,
                       "auth": 401, "overloaded": 529}),
        ("responses", {"plan": 429, "billing": 429, "context": 400, "model": 404, "policy": 400,
                       "auth": 401, "overloaded": 503}),
        ("chat", {"plan": 429, "billing": 429, "context": 400, "model": 404, "policy": 400,
                  "auth": 401, "overloaded": 503}),
        ("gemini", {"plan": 429, "billing": 429, "context": 400, "model": 404, "policy": 200,
                    "auth": 400, "overloaded": 503}),
        ("rest", {"plan": 429, "billing": 402, "context": 413, "model": 404, "policy": 422,
                  "auth": 401, "overloaded": 503}),
    ],
)  # fmt: skip
def test_each_vendor_refuses_with_its_own_status(vendor, expected):
    assert {name: World(name).ask(PATHS[vendor]).status for name in expected} == expected


@pytest.mark.parametrize("vendor", PATHS)
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 408, 409, 418, 425, 429, 500, 599])
def test_any_status_can_be_had_from_any_vendor(vendor, status):
    got = World(str(status)).ask(PATHS[vendor])
    assert got.status == status
    assert isinstance(got.json, dict)


def test_anthropic_states_a_plans_limit_in_epoch_seconds():
    got = World("plan(5h)").ask()
    reset = int(START) + 5 * 3600
    assert got.json["error"]["type"] == "rate_limit_error"
    assert got.headers["anthropic-ratelimit-unified-reset"] == str(reset)
    assert got.headers["anthropic-ratelimit-unified-representative-claim"] == "five_hour"
    assert got.headers["retry-after"] == "18000"


def test_anthropics_weekly_limit_is_named_so():
    got = World("plan(7d)").ask()
    assert got.headers["anthropic-ratelimit-unified-representative-claim"] == "seven_day"


@pytest.mark.parametrize("vendor", ["responses", "chat"])
def test_openai_states_a_plans_limit_in_the_body(vendor):
    got = World("plan(90m)").ask(PATHS[vendor])
    error = got.json["error"]
    assert error["type"] == "usage_limit_reached"
    assert (error["resets_at"], error["resets_in_seconds"]) == (int(START) + 5400, 5400)
    assert got.headers["x-codex-primary-window-minutes"] == "90"


def test_gemini_states_a_plans_limit_as_retry_info():
    details = World("plan(1h)").ask(PATHS["gemini"]).json["error"]["details"]
    assert details[-1]["retryDelay"] == "3600s"
    assert "PerDay" in details[0]["violations"][0]["quotaId"]


@pytest.mark.parametrize("vendor", PATHS)
def test_a_plans_limit_is_refused_until_its_instant_and_accepted_after_it(vendor):
    world = World("plan(1h)")
    assert world.ask(PATHS[vendor]).status == 429
    world.now += 3599.9
    assert world.ask(PATHS[vendor]).status == 429
    world.now += 0.1
    assert world.ask(PATHS[vendor]).status in {200, 201}
    assert world.totals.early == 1


@pytest.mark.parametrize("vendor", ["anthropic", "chat", "gemini", "rest"])
def test_headers_go_out_as_the_script_wrote_them(vendor):
    step = "429(retry-after=-5, retry-after-ms=abc, x-should-retry=false, header.X-Odd=1)"
    headers = World(step).ask(PATHS[vendor]).headers
    assert headers["retry-after"] == "-5"
    assert headers["retry-after-ms"] == "abc"
    assert headers["x-should-retry"] == "false"
    assert headers["x-odd"] == "1"


def test_gemini_repeats_a_usable_retry_after_in_its_body():
    error = World("429(2)").ask(PATHS["gemini"]).json["error"]
    assert error["details"] == [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2s"}
    ]
    assert "details" not in World("429(soon)").ask(PATHS["gemini"]).json["error"]


def test_a_problem_document_says_whether_a_retry_can_help():
    """R-C11: the boolean overrides the status, both ways."""
    assert World("503").ask("/invoices").json["is_retriable"] is True
    assert World("503(retriable=no)").ask("/invoices").json["is_retriable"] is False
    assert World("422(retriable=yes)").ask("/invoices").json["is_retriable"] is True


@pytest.mark.parametrize(("status", "length"), [(202, True), (204, False), (205, True)])
@pytest.mark.parametrize("path", PATHS.values())
def test_a_good_answer_can_have_another_good_status(path, status, length):
    got = World(str(status)).ask(path)
    assert got.status == status
    assert ("content-length" in got.headers) is length
    assert bool(got.body) is (status == 202)
    assert ("content-type" in got.headers) is (status == 202)
    assert got.entry.effect == ("POST /invoices/1" if path == "/invoices" else "")


def test_a_stream_that_is_ordered_without_a_body_has_none():
    got = World("204").ask(body={"model": "m", "stream": True})
    assert (got.status, got.body) == (204, b"")
    assert "transfer-encoding" not in got.headers


def test_what_the_resource_refuses_is_not_made_good():
    assert World("204").ask("/invoices/7", method="DELETE").status == 404


def test_a_redirect_says_where_if_it_is_told_and_changes_nothing():
    got = World("307(/elsewhere)").ask("/invoices")
    assert (got.status, got.headers["location"], got.body) == (307, "/elsewhere", b"")
    assert got.headers["content-length"] == "0"
    assert not got.entry.effect
    assert "location" not in World("308").ask().headers
    assert "content-length" not in World("304").ask("/invoices", method="GET").headers


def test_who_asks_before_the_named_time_is_noted():
    """R-L10, E-A9."""
    world = World("429(retry-after=2),ok")
    world.ask()
    world.now += 1.9
    assert world.ask().entry.is_early
    world.now += 0.2
    assert not world.ask().entry.is_early
    assert world.totals.early == 1


def test_what_was_under_way_when_the_refusal_was_sent_is_not_early():
    world = World("429(retry-after=2)")
    world.ask()
    world.now += 1
    world.began_at = START - 0.1
    assert not world.ask().entry.is_early
    # Its own refusal does not reopen the window for who began after the first.
    world.began_at = START + 0.5
    assert world.ask().entry.is_early


def test_a_refusal_closes_the_window_when_it_is_sent():
    world = World("429(retry-after=2, delay=1s)")
    world.ask()
    world.now += 0.5
    assert not world.ask().entry.is_early
    world.now += 0.5
    assert world.ask().entry.is_early


def test_anthropic_states_tokens_in_and_out_beside_all_tokens():
    headers = World("ok", limits=ClientLimits.parse(tokens="1000/60s")).ask().headers
    stem = "anthropic-ratelimit"
    for field in ("limit", "remaining", "reset"):
        assert headers[f"{stem}-input-tokens-{field}"] == headers[f"{stem}-tokens-{field}"]
    assert int(headers[f"{stem}-input-tokens-remaining"]) < 1000
    assert headers[f"{stem}-output-tokens-limit"] == "1000"
    assert headers[f"{stem}-output-tokens-remaining"] == "1000"
    assert datetime.fromisoformat(headers[f"{stem}-output-tokens-reset"]).timestamp() == START
    assert f"{stem}-requests-limit" not in headers


def test_another_client_is_not_inside_my_window():
    world = World("429(retry-after=2),ok")
    world.ask(key="mulligan-a")
    assert not world.ask(key="mulligan-b").entry.is_early


def test_each_client_can_have_a_copy_of_the_script():
    world = World("@* -> 429,ok")
    got = [world.ask(key=f"mulligan-{who}").status for who in ("a", "b", "a", "b")]
    assert got == [429, 429, 200, 200]


def test_a_key_that_is_not_ours_is_never_kept():
    world = World()
    entry = world.ask(key="sk-ant-real-key-that-came-here-by-mistake").entry
    assert entry.client.startswith("key-")
    assert "real" not in json.dumps(world.service.ledger.as_json())


def test_a_lost_reply_has_its_effect_and_a_reset_one_has_not():
    world = World("lost,reset,ok")
    lost, reset = world.ask("/invoices"), world.ask("/invoices")
    assert (lost.acts, reset.acts) == ((Reset(),), (Reset(),))
    assert (lost.entry.effect, reset.entry.effect) == ("POST /invoices/1", "")


def test_the_same_creation_twice_is_a_duplicate_and_another_one_is_not():
    world = World("lost,ok")
    for amount in (7, 7, 8):
        world.ask("/invoices", {"eur": amount})
    assert (world.totals.effects, world.totals.duplicates) == (3, 1)


def test_a_key_makes_one_effect_of_two_requests():
    world = World("lost,ok")
    first = world.ask("/invoices", idempotency_key='"k1"')
    again = world.ask("/invoices", idempotency_key='"k1"')
    assert first.entry.key == again.entry.key == "k1"
    assert again.headers["idempotent-replayed"] == "true"
    assert (world.totals.effects, world.totals.duplicates) == (1, 0)


def test_a_fresh_key_for_each_attempt_is_seen():
    """R-I5: a key that changes with the attempt protects nothing."""
    world = World("lost,ok")
    for key in ("k1", "k2"):
        world.ask("/invoices", {"eur": 7}, idempotency_key=key)
    assert (world.totals.effects, world.totals.duplicates, world.totals.rekeyed) == (2, 0, 1)
    world.ask("/invoices", {"eur": 8}, idempotency_key="k3")
    assert world.totals.rekeyed == 1


def test_ids_do_not_come_again_with_another_ledger():
    world = World()
    first = world.ask().json["id"]
    world.service.clear(world.now)
    assert world.ask().json["id"] != first


def test_a_gateways_error_may_come_after_the_write():
    """R-C4: 502 from a middleman leaves the outcome unknown."""
    world = World("502(applied=yes),html(504, applied=yes)")
    assert world.ask("/invoices", {"a": 1}).entry.effect == "POST /invoices/1"
    assert world.ask("/invoices", {"a": 2}).entry.effect == "POST /invoices/2"


@pytest.mark.parametrize(
    ("vendor", "left", "reset"),
    [
        ("anthropic", "anthropic-ratelimit-requests-remaining", "2026-11-15T17:01:00Z"),
        ("chat", "x-ratelimit-remaining-requests", "1m0s"),
    ],
)
def test_quota_headers_count_down_for_real(vendor, left, reset):
    world = World(limits=ClientLimits.parse(requests="3/60s", counting="sliding"))
    world.now = 1_794_762_000.0  # a whole minute
    got = [world.ask(PATHS[vendor]) for _ in range(4)]
    assert [each.status for each in got] == [200, 200, 200, 429]
    assert [each.headers[left] for each in got] == ["2", "1", "0", "0"]
    assert reset in got[0].headers.values()
    assert got[3].entry.outcome == "limit"
    world.now += 60
    assert world.ask(PATHS[vendor]).headers[left] == "2"


def test_a_plain_resource_states_its_limit_as_the_draft_does():
    world = World(limits=ClientLimits.parse(requests="2/60s", counting="sliding"))
    headers = world.ask("/invoices").headers
    assert headers["ratelimit-policy"] == '"requests";q=2;w=60'
    assert headers["ratelimit"] == '"requests";r=1;t=60'


def test_a_limit_is_refused_with_a_wait_that_suffices():
    world = World(limits=ClientLimits.parse(requests="1/10s"))
    world.ask()
    world.now += 2.5
    refused = world.ask()
    assert (refused.status, refused.headers["retry-after"]) == (429, "8")
    world.now += 8
    assert world.ask().status == 200


def test_a_request_over_the_token_limit_never_passes():
    world = World(limits=ClientLimits.parse(tokens="10/60s"))
    refused = world.ask(PATHS["chat"], {"model": "m", "messages": ["word " * 100]})
    assert "too large" in refused.json["error"]["message"]
    assert "retry-after" not in refused.headers


@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.5, 0.999])
@pytest.mark.parametrize("vendor", ["responses", "chat"])
def test_the_seconds_that_openai_states_suffice(vendor, part):
    world = World("plan(10s)")
    world.now += part
    world.now += world.ask(PATHS[vendor]).json["error"]["resets_in_seconds"]
    assert world.ask(PATHS[vendor]).status == 200
    assert world.totals.early == 0


@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.5, 0.999])
def test_the_reset_that_anthropic_states_is_not_too_early(part):
    world = World(limits=ClientLimits.parse(requests="1/1500ms", counting="sliding"))
    world.now += part
    world.ask()
    stated = world.ask().headers["anthropic-ratelimit-requests-reset"]
    world.now = datetime.fromisoformat(stated).timestamp()
    assert world.ask().status == 200


@pytest.mark.parametrize("part", [0.0004, 0.0014, 0.3, 1.4996])
def test_the_milliseconds_that_openai_states_suffice(part):
    world = World(limits=ClientLimits.parse(requests="1/1500ms", counting="sliding"))
    world.ask(PATHS["chat"])
    world.now += part
    world.now += int(world.ask(PATHS["chat"]).headers["retry-after-ms"]) / 1000
    assert world.ask(PATHS["chat"]).status == 200


def test_who_is_refused_by_a_limit_takes_no_step():
    world = World("ok,503", limits=ClientLimits.parse(requests="1/10s"))
    assert [world.ask().status for _ in range(3)] == [200, 429, 429]
    world.now += 10
    assert world.ask().status == 503


def test_the_same_seed_has_the_same_luck_and_another_has_not():
    def fates(seed):
        world = World("503:0.5,ok", seed=seed)
        return [world.ask().status for _ in range(40)]

    assert fates(1) == fates(1)
    assert fates(1) != fates(2)


def test_clients_that_race_do_not_change_each_others_luck():
    def fates(order):
        world = World("@* -> 503:0.5,ok", seed=3)
        got: dict[str, list[int | None]] = {"a": [], "b": []}
        for who in order:
            got[who].append(world.ask(key=f"mulligan-{who}").status)
        return got

    assert fates("ab" * 20) == fates("a" * 20 + "b" * 20)


def test_another_script_begins_from_its_start():
    world = World("429")
    world.ask()
    world.service.set(Script.parse("503,ok"))
    assert [world.ask().status for _ in range(2)] == [503, 200]


def test_a_file_changes_what_it_says_and_leaves_the_rest():
    world = World("503", limits=ClientLimits.parse(requests="1/60s"))
    change = lambda text: world.service.change(read_toml(text, file="x"))  # noqa: E731
    change('text = "hello"\nseed = 4')
    assert world.ask("/invoices", {"eur": 1}).status == 503
    assert world.ask("/invoices").entry.outcome == "limit"
    change('script = "ok"\nresources = ["invoices", "payments"]\nhonours_keys = false')
    assert world.ask("/payments", key="mulligan-b").status == 201
    got = world.ask(key="mulligan-c")
    assert got.json["content"] == [{"type": "text", "text": "hello"}]
    change('[limits]\nrequests = "9/60s"')
    twice = [world.ask("/invoices", idempotency_key="k").entry.effect for _ in range(2)]
    assert twice == ["POST /invoices/1", "POST /invoices/2"]
    change('resources = ["payments"]')
    assert world.ask("/invoices").entry.effect == ""
    assert world.ask("/payments").entry.effect == "POST /payments/2"


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("vendor", PATHS)
@pytest.mark.parametrize("name", [name for name in MENU if name not in STATUSES])
def test_every_dish_of_the_menu_can_be_had_from_everybody(name, vendor, is_stream):
    path = PATHS[vendor].replace(":generate", ":streamGenerate") if is_stream else PATHS[vendor]
    got = World(name).ask(path, {"model": "m", "stream": is_stream})
    assert got.acts
    assert got.entry.outcome == name
    assert (got.status is None) == (got.entry.status is None)


ODD: tuple[object, ...] = (5, "x", [1], {"a": 5}, None, [[]], [{"type": []}])


@pytest.mark.parametrize("vendor", [name for name in PATHS if name != "rest"])
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_tools_of_any_shape_are_survived(vendor, odd):
    schemas = [odd, {"properties": odd}]
    schemas += [{"properties": {"command": {}, "x": odd}, "required": ["x"]}]
    schemas += [{"properties": {"x": {"enum": odd}}, "required": odd}]
    groups = [odd, [odd], [{"functionDeclarations": odd}], [{"function": odd}]]
    for schema in schemas:
        tool = {"name": "bash", "type": "function"}
        tool |= dict.fromkeys(("input_schema", "parameters", "parametersJsonSchema"), schema)
        groups.append([{**tool, "function": tool, "functionDeclarations": [tool]}])
    for tools in groups:
        body = {"model": odd, "tools": tools, "messages": odd, "input": odd, "contents": odd}
        assert World("shell(ls)").ask(PATHS[vendor], body).status == 200


def test_an_error_in_geminis_array_is_an_element_of_it():
    got = World("error-event").ask("/v1beta/models/m:streamGenerateContent")
    chunks = re.findall(rb"[0-9a-f]+\r\n([^\r]+)\r\n", got.body)
    *parts, last = json.loads(b"".join(chunks))
    assert parts
    assert last["error"]["status"] == "UNAVAILABLE"


def test_a_gateways_page_may_say_when():
    got = World("html(503, retry-after=7, header.Server=cdn)").ask()
    assert (got.status, got.headers["retry-after"], got.headers["server"]) == (503, "7", "cdn")
    assert got.body.startswith(b"<html>")


def test_a_refused_port_stays_closed_as_long_as_asked():
    assert World("refuse(2s)").ask().acts == (ClosePort(2.0), Reset())
    assert World("refuse").ask().acts == (ClosePort(5.0), Reset())
    assert World("refuse(0)").ask().acts == (ClosePort(0.0), Reset())


def test_a_drip_without_gaps_has_none():
    assert DeliveryPause(0.0) in World("drip(0)").ask("/invoices").acts


@pytest.mark.parametrize("body", [b'{"a":', b"[1]", b'{"a": NaN}'])
def test_a_body_that_is_no_json_object_is_refused_by_the_resource(body):
    head = read_head(b"POST /invoices HTTP/1.1")
    got = Got(World().service.handle(HttpRequest(head=head, body=body), START))
    assert (got.status, got.entry.effect) == (400, "")
