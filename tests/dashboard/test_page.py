"""The page in a real headless Chromium: what a person sees, and what hostile text cannot do."""

from __future__ import annotations

import http.server
import threading
import time

import pytest

import mulligan
from mulligan.testing import Scripted, status_error

from . import journals
from .browser import CHROMIUM, DRIVER, chromium
from .serving import TOKEN, running

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None,
        reason="no Chromium: apt-get install chromium chromium-driver",
    ),
]

HOSTILE = (
    '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
    "javascript:window.hacked=1//\"'><svg onload=window.hacked=1>{{csrf}}"
)


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser, dashboard):
    browser.look(width=1200, height=900, is_dark=False)
    browser.open(dashboard.link)
    browser.until_text("live", "#link-words")
    browser.logged()  # of pages before this one
    yield browser
    errors = [each for each in browser.logged() if "favicon" not in each and "409" not in each]
    browser.open("about:blank")
    assert errors == []


def test_with_no_runs_the_page_says_what_to_do(page):
    page.until_text("No runs yet")
    assert "mulligan run -- claude" in page.text()
    page.run("location.hash = '#/targets'")
    page.until_text("No store is shown")
    page.run("location.hash = '#/failures'")
    page.until_text("Nothing failed in the last 1h")


def test_a_run_that_meets_a_limit_counts_down_and_turns_green_without_a_reload(page, runs):
    page.run("window.same = true")
    now = time.time()
    claimed = journals.made(runs, now, name="night-shift")
    journals.begun(runs, claimed, now)
    page.until_text("night-shift")
    page.until_text("running")
    journals.limited(runs, claimed, now + 1, now + 90)
    page.until_text("waiting")
    first = page.text(".run .counter")
    assert first.startswith("1:")
    page.until("return document.querySelector('.run .counter').innerText !== arguments[0]", first)
    journals.begun(runs, claimed, now + 2, 2, "resume")
    journals.ended(runs, claimed, now + 3, 2, code=0)
    runs.release(claimed)
    page.until("return document.querySelector('.run.good .badge')?.innerText === 'done'")
    assert page.run("return window.same") is True


def test_a_plans_gantt_grows(page, runs):
    now = time.time()
    plan = journals.made(runs, now - 60, name="release", agent="plan", command="release.toml")
    journals.plan_file(runs, plan.id, {"survey": ["api", "web"], "report": ["write"]})
    journals.begun(runs, plan, now - 59)
    page.until_text("release")
    page.run("location.hash = '#/runs/' + arguments[0]", plan.id)
    page.until_text("not started")
    assert page.run("return document.querySelectorAll('.bar').length") == 0
    agent = journals.made(runs, now - 50, id=f"{plan.id}.survey.api", parent=plan.id)
    journals.begun(runs, agent, now - 49)
    page.until("return document.querySelectorAll('.bar.working').length === 1")
    journals.limited(runs, agent, now - 20, now + 60)
    page.until("return document.querySelectorAll('.bar.limit.ahead').length === 1")
    width = "return document.querySelector('.bar.failed').getBoundingClientRect().width"
    assert page.run(width) > 20
    journals.begun(runs, agent, now - 10, 2, "resume")
    journals.ended(runs, agent, now - 1, 2, code=0)
    page.until("return document.querySelectorAll('.bar.done').length === 1")
    assert page.run("return document.querySelectorAll('.lanes li').length") == 3


def test_cancel_cancels_the_run(page, runs):
    now = time.time()
    claimed = journals.made(runs, now, name="unwanted")
    journals.begun(runs, claimed, now)
    journals.limited(runs, claimed, now + 1, now + 3_000)
    runs.release(claimed)
    page.until_text("waiting")
    page.run("window.confirm = () => true")
    page.click("[data-key^='cancel-']")
    page.until_text("cancelled")
    state = runs.look(claimed.id)
    assert state is not None
    assert state.status == "cancelled"
    page.until_text("cancelled run", "#toasts")


def test_a_button_that_cannot_do_it_says_why(page, runs):
    now = time.time()
    claimed = journals.made(runs, now, name="held")
    journals.begun(runs, claimed, now)
    journals.ended(runs, claimed, now + 1, code=1, kind="auth", then="stop", exit=1)
    page.until_text("failed")
    page.click("[data-key^='resume-']")
    page.until_text("is being run by process", "#toasts")


def test_hostile_names_prompts_and_logs_execute_nothing(page, runs, dashboard):
    now = time.time()
    claimed = journals.made(runs, now, name=HOSTILE, command=f"claude -p '{HOSTILE}'", cwd=HOSTILE)
    journals.begun(runs, claimed, now)
    journals.log(runs, claimed.id, 1, f"{HOSTILE}\n\x1b]0;title\x07 the end of it")
    journals.ended(
        runs, claimed, now + 1, code=1, kind="auth", message=HOSTILE, then="stop", exit=1,
        because=HOSTILE, advice=HOSTILE,
    )  # fmt: skip
    page.until_text("onerror")
    page.run("location.hash = '#/runs/' + arguments[0]", claimed.id)
    page.until_text("What to do:")
    page.click("[data-key='log-1']")
    page.until_text("the end of it")
    assert "<script>window.hacked=1</script>" in page.text("pre.log")
    page.run("location.hash = '#/failures'")
    page.until_text("auth")
    assert page.run("return window.hacked ?? null") is None
    parsed = "return document.querySelectorAll('main img, main script, main svg').length"
    assert page.run(parsed) == 0


def test_a_hostile_address_executes_nothing(page):
    page.run("location.hash = '#/runs/' + encodeURIComponent(arguments[0])", HOSTILE)
    page.until_text("There is no such run")
    assert page.run("return window.hacked ?? null") is None
    page.logged()  # the 404 that was asked for


def test_another_site_can_neither_read_nor_change_anything(page, runs, dashboard):
    now = time.time()
    claimed = journals.made(runs, now, name="wanted")
    journals.begun(runs, claimed, now)
    runs.release(claimed)
    dashboard.sources.refresh()

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>evil</title>")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        page.open(f"http://127.0.0.1:{server.server_port}/")
        tried = page.run(
            """
            const [origin, run] = arguments;
            const body = JSON.stringify({run});
            const ask = (path, options) =>
              fetch(origin + path, {credentials: 'include', ...options})
                .then((answer) => answer.text(), () => 'refused');
            return Promise.all([
              ask('/api/actions/cancel', {method: 'POST', body}),
              ask('/api/actions/cancel', {method: 'POST', body, mode: 'no-cors'}),
              ask('/api/runs'),
            ]);
            """,
            dashboard.origin,
            claimed.id,
        )
        assert tried == ["refused"] * 3
        page.run(
            """
            const form = document.createElement('form');
            form.method = 'POST';
            form.enctype = 'text/plain';
            form.action = `${arguments[0]}/api/actions/cancel`;
            document.body.append(form); form.submit();
            """,
            dashboard.origin,
        )
        page.until("return document.title !== 'evil'")
    finally:
        server.shutdown()
        server.server_close()
    state = runs.look(claimed.id)
    assert state is not None
    assert state.status == "running"
    page.logged()  # what the other site was refused


def test_the_keyboard_and_a_screen_reader_find_everything(page, runs):
    now = time.time()
    claimed = journals.made(runs, now, name="spoken")
    journals.begun(runs, claimed, now)
    journals.limited(runs, claimed, now + 1, now + 600)
    page.until_text("spoken")
    unnamed = page.run(
        """
        return [...document.querySelectorAll('button, a, input, [role=img]')]
          .filter((each) => !(each.getAttribute('aria-label') || each.innerText.trim()))
          .map((each) => each.outerHTML);
        """
    )
    assert unnamed == []
    assert page.run("return document.querySelectorAll('main, nav, header').length") == 3
    assert page.run("return document.querySelector('nav [aria-current]').innerText") == "Runs"
    page.run("document.querySelector('.run a').focus()")
    page.run("document.activeElement.click()")
    page.until_text("Timeline")
    assert page.run("return document.activeElement.id") == "main"
    assert "waiting for a limit, attempt 1" in page.run(
        "return document.querySelector('.bar.limit').getAttribute('aria-label')"
    )


def test_focus_stays_on_a_button_while_the_list_changes(page, runs):
    now = time.time()
    claimed = journals.made(runs, now, name="steady")
    journals.begun(runs, claimed, now)
    page.until_text("steady")
    page.run("document.querySelector('[data-key^=cancel-]').focus()")
    journals.made(runs, now + 1, name="another")
    page.until_text("another")
    assert page.run("return document.activeElement.dataset.key") == f"cancel-{claimed.id}"


def test_times_are_in_the_zone_of_the_viewer(page, runs):
    page.devtools("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    page.run("location.reload()")
    page.until_text("live", "#link-words")
    now = time.time()
    claimed = journals.made(runs, now, name="zoned")
    journals.begun(runs, claimed, now)
    journals.limited(runs, claimed, now, now + 600)
    page.until_text("waiting")
    shown = page.text(".run .when")
    wanted = page.run(
        "return new Date(arguments[0] * 1000).toLocaleTimeString([], "
        "{hour: '2-digit', minute: '2-digit', timeZone: 'Asia/Tokyo'})",
        now + 600,
    )
    assert wanted in shown


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200], ids=["phone", "desk"])
def test_nothing_is_cut_off_in_light_dark_and_on_a_phone(page, runs, tmp_path, is_dark, width):
    now = time.time()
    for number in range(10):
        claimed = journals.made(runs, now - number, name=f"run-{number} " + "word " * 30)
        journals.begun(runs, claimed, now - number)
        if number % 2:
            journals.limited(runs, claimed, now, now + 600 * number)
    page.until("return document.querySelectorAll('.run').length === 10")
    page.screenshot(tmp_path / "page.png", width=width, height=844, is_dark=is_dark)
    assert (tmp_path / "page.png").stat().st_size > 10_000
    wider = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.run(wider) <= 0
    colour = "return getComputedStyle(document.documentElement).backgroundColor"
    red = int(page.run(colour).partition("(")[2].split(",")[0])
    assert (red < 128) is is_dark


def test_targets_show_their_state_and_can_be_blocked(browser, home, tmp_path):
    store = f"sqlite:{tmp_path / 'guards.db'}"
    guard = mulligan.Guard("billing", effects="read", in_place=1, store=store)
    with pytest.raises(Exception, match="429"):
        guard.call(Scripted(status_error(429, headers={"retry-after": "600"})))
    with running(store) as dashboard:
        browser.open(dashboard.link)
        browser.run("location.hash = '#/targets'")
        browser.until_text("billing")
        browser.until_text("shut")
        browser.run("window.confirm = () => true")
        browser.click("[data-key^='block-billing']")
        browser.until_text("blocked")
        browser.click("[data-key^='reset-billing']")
        browser.until("return !document.querySelector('main').innerText.includes('blocked')")


def test_read_only_and_without_a_token_there_are_no_buttons(browser, home, runs):
    now = time.time()
    claimed = journals.made(runs, now, name="looked-at")
    journals.begun(runs, claimed, now)
    with running(is_read_only=True) as dashboard:
        browser.open(dashboard.link)
        browser.until_text("looked-at")
        browser.until_text("read-only", "#link-words")
        assert browser.run("return document.querySelectorAll('.run button').length") == 0
    assert TOKEN not in browser.run("return location.href")
