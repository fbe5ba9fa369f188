"""What becomes of calls that ran out of everything, on every store."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import trio

import mulligan
from mulligan import DeadLetters, Guard, Once, replayable
from mulligan.core.dead_letter import Mark
from mulligan.dead_letters import replayable as registry
from mulligan.errors import StoreDown
from mulligan.testing import VirtualClock

SECRET = "sk-live-0123456789abcdef"


@pytest.fixture(autouse=True)
def _private_home(tmp_path, monkeypatch):
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(registry, "_known", {})


class Hook:
    """A receiver that is down until told otherwise, and the functions that send to it."""

    def __init__(self, *, loop: str = "") -> None:
        self.is_up = False
        self.got: list[tuple[Any, ...]] = []
        self.keys: list[str] = []

        def send(url, body, token):
            here = mulligan.current()
            self.keys.append("" if here is None else here.key)
            if not self.is_up:
                raise ConnectionRefusedError("nobody listens")
            self.got.append((url, body, token))
            return {"ok": True}

        async def asend(url, body, token):
            return send(url, body, token)

        self.function = asend if loop else send
        replayable("send", secrets=("token",), supply=lambda: {"token": SECRET})(self.function)


@pytest.fixture
def hook() -> Hook:
    return Hook()


def guard(place, **options) -> Guard:
    defaults: dict[str, Any] = {
        "store": place.store,
        "dead_letters": True,
        "attempts": 2,
        "effects": "read",
    }
    return Guard("hooks", clock=VirtualClock(), **{**defaults, **options})


def fail(place, hook, **options):
    with pytest.raises(ConnectionRefusedError):
        guard(place, **options).call(hook.function, "https://a.b", {"n": 1}, token=SECRET)


def test_a_call_that_ran_out_of_attempts_is_written_down(place, hook):  # R-X1
    fail(place, hook)
    (record,) = DeadLetters(place.another()).all()
    letter = record.letter
    assert record.state == "waiting"
    assert (letter.target, letter.name, letter.attempts) == ("hooks", "send", 2)
    assert letter.because == "attempt 2 of 2 failed with network"
    assert (letter.kind, letter.message) == ("network", "nobody listens")
    assert letter.arguments == {"url": "https://a.b", "body": {"n": 1}}
    assert letter.secrets == ("token",)
    assert letter.function.endswith("Hook.__init__.<locals>.send")


def test_what_did_not_run_out_of_anything_is_not_written_down(place, hook):
    def wrong():
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        guard(place).call(wrong)
    with pytest.raises(ConnectionRefusedError):
        guard(place, dead_letters=False).call(hook.function, "u", 1, "t")
    hook.is_up = True
    guard(place).call(hook.function, "u", 1, "t")
    assert DeadLetters(place.store).all() == ()


def test_a_fallback_does_not_hide_an_exhaustion(place, hook):
    assert guard(place, fallback="later").call(hook.function, "u", 1, "t") == "later"
    assert len(DeadLetters(place.store).all()) == 1


def test_a_function_that_did_not_ask_for_it_gets_a_letter_without_arguments(place):
    def plain(name):
        raise ConnectionRefusedError(name)

    with pytest.raises(ConnectionRefusedError):
        guard(place).call(plain, "ada")
    (record,) = DeadLetters(place.store).all()
    assert (record.letter.arguments, record.letter.name) == (None, "")
    assert record.letter.unfit == "its function is not replayable"
    mark = DeadLetters(place.store).replay(record)
    assert mark is not None
    assert (mark.state, mark.because) == ("refused", "its function is not replayable")


def test_a_call_made_while_another_ones_error_is_handled_is_written_down_too(place, hook):
    def two():
        try:
            guard(place).call(hook.function, "https://a.b", 1, token=SECRET)
        except ConnectionRefusedError:
            guard(place).call(hook.function, "https://c.d", 1, token=SECRET)

    with pytest.raises(ConnectionRefusedError):
        two()
    urls = [(each.letter.arguments or {})["url"] for each in DeadLetters(place.store).all()]
    assert urls == ["https://a.b", "https://c.d"]


def test_an_error_that_is_raised_again_is_another_letter(place):
    error = ConnectionRefusedError("nobody listens, and everybody is told so with one object")

    def plain():
        raise error

    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            guard(place).call(plain)
    assert len(DeadLetters(place.store).all()) == 2


def test_a_call_inside_a_call_is_written_down_once(place, hook):
    outer = Guard("agent", store=place.store, dead_letters=True, clock=VirtualClock())

    def step():
        try:
            return guard(place).call(hook.function, "u", 1, "t")
        except ConnectionRefusedError as error:
            raise RuntimeError("the step failed") from error

    with pytest.raises(RuntimeError):
        outer.call(step)
    (record,) = DeadLetters(place.store).all()
    assert record.letter.target == "hooks"


def test_a_replay_makes_the_call_again_with_the_secrets_supplied(place, hook):
    fail(place, hook)
    hook.is_up = True
    box = DeadLetters(place.another())
    (record,) = box.all()
    mark = box.replay(record)
    assert mark is not None
    assert mark.state == "replayed"
    assert hook.got == [("https://a.b", {"n": 1}, SECRET)]
    (record,) = box.all()
    assert [each.state for each in record.marks] == ["replaying", "replayed"]
    again = box.replay(record)
    assert again is not None
    assert (again.state, len(hook.got)) == ("replayed", 1)


def test_what_fails_again_says_so_and_stays(place, hook):
    fail(place, hook)
    box = DeadLetters(place.store)

    def quick(*args, **kwargs):
        raise ValueError("no such customer")

    registry._known["send"] = registry.Replayable(
        name="send", function=quick, secrets=("token",), supply=lambda: {"token": SECRET}
    )
    mark = box.replay(box.all()[0])
    assert mark is not None
    assert (mark.state, mark.because) == ("failed", "ValueError: no such customer")
    assert [record.state for record in box.all()] == ["failed"]  # and no second letter


@pytest.mark.parametrize(
    ("supply", "because"),
    [
        (None, "'send' needs token, which letters do not store"),
        (dict, "supply() of 'send' does not return 'token'"),
    ],
)
def test_without_its_secrets_a_letter_is_refused(place, hook, supply, because):
    fail(place, hook)
    hook.is_up = True
    made = registry._known["send"]
    registry._known["send"] = registry.Replayable(
        name="send", function=made.function, secrets=("token",), supply=supply
    )
    box = DeadLetters(place.store)
    mark = box.replay(box.all()[0])
    assert mark is not None
    assert mark.state == "refused"
    assert mark.because.startswith(because)
    assert hook.got == []


def test_a_function_that_has_changed_is_not_called_with_the_old_arguments(place, hook):
    fail(place, hook)

    def send(url, text, token):
        raise AssertionError

    registry._known.clear()
    replayable("send", secrets=("token",), supply=lambda: {"token": SECRET})(send)
    box = DeadLetters(place.store)
    mark = box.replay(box.all()[0])
    assert mark is not None
    assert (mark.state, mark.because) == (
        "refused",
        "send() has changed: it no longer takes 'body'",
    )


@pytest.mark.real
def test_two_replays_at_once_make_one_call(place, hook):
    fail(place, hook)
    hook.is_up = True
    inside, go_on = threading.Event(), threading.Event()
    made = registry._known["send"]

    def slow(url, body, token):
        inside.set()
        go_on.wait(5)
        return made.function(url, body, token)

    registry._known["send"] = registry.Replayable(
        name="send", function=slow, secrets=("token",), supply=made.supply
    )
    boxes = [DeadLetters(place.store), DeadLetters(place.another())]
    (record,) = boxes[0].all()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(boxes[0].replay, record)
        inside.wait(5)
        second = pool.submit(boxes[1].replay, record)
        assert second.result(10) is None
        go_on.set()
        mark = first.result(10)
    assert mark is not None
    assert (mark.state, len(hook.got)) == ("replayed", 1)


def test_a_replay_runs_under_the_same_key(place, hook):
    with pytest.raises(ConnectionRefusedError):
        guard(place).once("event-7", hook.function, "u", 1, "t")
    hook.is_up = True
    box = DeadLetters(place.store)
    mark = box.replay(box.all()[0])
    assert mark is not None
    assert mark.state == "replayed"
    assert set(hook.keys) == {"event-7"}
    # The key knows: whoever asks for the same operation now is handed what the replay got.
    assert guard(place).once("event-7", hook.function, "u", 1, "another token") == {"ok": True}
    assert len(hook.got) == 1


def test_what_was_done_meanwhile_is_not_done_again(place, hook):
    with pytest.raises(ConnectionRefusedError):
        guard(place).once("event-7", hook.function, "u", 1, "t")
    hook.is_up = True
    guard(place).once("event-7", hook.function, "u", 1, "t")
    box = DeadLetters(place.store)
    mark = box.replay(box.all()[0])
    assert mark is not None
    assert (mark.state, mark.because) == (
        "replayed",
        "its operation has been done under its key since",
    )
    assert len(hook.got) == 1


def test_a_key_that_is_kept_elsewhere_makes_a_letter_unfit(place, hook):
    from mulligan.stores.memory import Memory

    with pytest.raises(ConnectionRefusedError):
        guard(place, dead_letters=Memory()).once("event-7", hook.function, "u", 1, "t")
    elsewhere = Memory()
    with pytest.raises(ConnectionRefusedError):
        guard(place, dead_letters=elsewhere).once("event-7", hook.function, "u", 1, "t")
    (record,) = DeadLetters(elsewhere).all()
    assert record.letter.unfit == (
        "its key is kept in another store than the letter; give both one store"
    )
    assert record.letter.arguments is None


def test_decorators_in_either_order_are_replayed(place):
    done: list[int] = []
    keyed = guard(place)

    @replayable("above")
    @keyed.once_per("n", scope="ada", dump=list, load=tuple)
    def above(n):
        if not done:
            raise ConnectionRefusedError
        return (n,)

    @keyed.once_per("n", scope="ada", dump=list, load=tuple)
    @replayable("below")
    def below(n):
        if not done:
            raise ConnectionRefusedError
        return (n,)

    for function in (above, below):
        with pytest.raises(ConnectionRefusedError):
            function(5)
    done.append(1)
    box = DeadLetters(place.store)
    marks = [box.replay(record) for record in box.all()]
    assert [mark and mark.state for mark in marks] == ["replayed", "replayed"]
    assert above(5) == below(5) == (5,)


@pytest.mark.parametrize("world", ["asyncio", "trio"])
def test_a_coroutine_is_replayed_on_the_loop_it_came_from(place, world):
    hook = Hook(loop=world)

    async def main():
        with pytest.raises(ConnectionRefusedError):
            await guard(place).acall(hook.function, "u", 1, "t")
        with pytest.raises(ConnectionRefusedError):
            await guard(place).aonce("event-7", hook.function, "u", 1, "t")

    asyncio.run(main()) if world == "asyncio" else trio.run(main)
    hook.is_up = True
    box = DeadLetters(place.store)
    records = box.all()
    assert [record.letter.loop for record in records] == [world, world]
    marks = [box.replay(record) for record in records]
    assert [mark and mark.state for mark in marks] == ["replayed", "replayed"]
    assert len(hook.got) == 2


@pytest.mark.parametrize(
    ("argument", "because"),
    [
        ((1, 2), "its argument body is a tuple, which is not JSON"),
        (object(), "its argument body is a object, which is not JSON"),
        ({1: 2}, "its argument body is a dict, which is not JSON"),
        (float("nan"), "its argument body is a float, which is not JSON"),
        ("x" * 300_000, "its arguments are larger than 256 kB"),
        (
            {"password": "hunter2hunter2"},
            "its argument body looks like it holds a secret; if it does, name it in secrets=",
        ),
        (
            f"see {SECRET}",
            "its argument body looks like it holds a secret; if it does, name it in secrets=",
        ),
    ],
)
def test_arguments_that_could_not_be_sent_again_as_they_were_are_not_stored(
    place, hook, argument, because
):
    with pytest.raises(ConnectionRefusedError):
        guard(place).call(hook.function, "u", argument, "t")
    (record,) = DeadLetters(place.store).all()
    assert (record.letter.arguments, record.letter.unfit) == (None, because)


def test_filters_choose(place, hook):
    fail(place, hook)
    with pytest.raises(ConnectionRefusedError):
        Guard("other", store=place.store, dead_letters=True, attempts=1).call(
            hook.function, "u", 1, "t"
        )
    box = DeadLetters(place.store)
    one, two = box.all()
    assert box.all(target="hooks") == (one,)
    assert box.all(function="send") == box.all(function="<locals>.send") == (one, two)
    assert box.all(function="end") == ()
    assert box.all(states=["replayed"]) == ()
    assert box.all(older="1h", now=two.letter.at + 7200) == (one, two)
    assert box.all(newer="1h", now=two.letter.at + 7200) == ()
    assert box.get(one.letter.id) == one
    with pytest.raises(mulligan.SettingError, match=r"2 letters begin with '.'; give more"):
        box.get(two.letter.id[:1])
    with pytest.raises(mulligan.SettingError, match="no dead letter 'zz' in"):
        box.get("zz")
    box.purge(one)
    assert box.all() == (two,)


def test_a_replay_goes_through_the_guard_that_is_its_own(place):
    seen = []
    strict: Any = {"store": place.store, "breaker": mulligan.Breaker(failures=3), "attempts": 1}
    own = Guard("strict", dead_letters=True, fallback="none", metadata={"mine": 1}, **strict)

    @replayable("own", guard=own)
    def call(n):
        here = mulligan.current()
        seen.append({} if here is None else dict(here.metadata))
        raise ConnectionRefusedError("nobody listens")

    assert own.call(call, 1) == own.once("k", call, 1) == "none"
    box = DeadLetters(place.store)
    marks = [box.replay(record) for record in box.all()]
    # A fallback is no success, and the breaker counts what replays fail with.
    assert [mark and (mark.state, mark.because) for mark in marks] == [
        ("failed", "ConnectionRefusedError: nobody listens"),
        ("failed", "CircuitOpen: strict: 3 failures in a row"),
    ]
    assert seen[-1] == {"mine": 1}
    registry._known["own"] = registry.Replayable(name="own", function=lambda n: n)
    marks = [box.replay(record) for record in box.all()]
    assert [mark and mark.state for mark in marks] == ["replayed", "replayed"]


# Where the store is down


class Down:
    """A store whose journal does not answer."""

    url = "test:down"

    def __init__(self, store) -> None:
        self.store, self.is_down = store, True
        self.state, self.keys, self.scoped, self.close = (
            *(store.state, store.keys),
            *(store.scoped, store.close),
        )

    @property
    def journal(self):
        return self

    def __getattr__(self, name):
        if self.is_down:
            raise StoreDown("test:down", "no answer")
        return getattr(self.store.journal, name)


def test_a_letter_that_cannot_be_written_waits_in_a_file(place, hook, tmp_path, caplog):
    store = Down(place.store)
    fail(place, hook, store=store)
    (path,) = (tmp_path / "home" / "dead").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert f"waits in {path}: test:down: no answer" in caplog.text
    box = DeadLetters(store)
    with pytest.raises(StoreDown):
        box.all()
    (waiting,) = box.spooled()
    store.is_down = False
    assert box.all() == (waiting,)
    hook.is_up = True
    mark = box.replay(waiting)
    assert mark is not None
    assert mark.state == "replayed"
    assert not path.exists()
    (record,) = box.all()
    assert (record.state, record.spooled) == ("replayed", False)


class Slow(Down):
    """A store whose journal takes its time, but takes it."""

    def __init__(self, store) -> None:
        super().__init__(store)
        self.asked, self.may_answer, self.is_down = threading.Event(), threading.Event(), False

    def append(self, stream, entry):
        self.asked.set()
        self.may_answer.wait(10)
        return self.store.journal.append(stream, entry)

    def answer(self) -> None:
        """Go on with what nobody waits for any more, to its end."""
        self.may_answer.set()
        while not self.store.journal.streams("dead/"):
            time.sleep(0.01)


@pytest.mark.real
@pytest.mark.parametrize("world", ["sync", "asyncio", "trio"])
def test_a_letter_holds_its_caller_up_for_a_quarter_of_a_second_at_most(place, world, within):
    store, hook = Slow(place.store), Hook(loop=world if world != "sync" else "")
    heard: list[mulligan.Event] = []
    slow = guard(place, store=store, attempts=1, listeners=[heard.append])

    async def main():
        await slow.acall(hook.function, "https://a.b", {"n": 1}, token=SECRET)

    def call():
        if world == "sync":
            slow.call(hook.function, "https://a.b", {"n": 1}, token=SECRET)
        else:
            asyncio.run(main()) if world == "asyncio" else trio.run(main)

    began = time.monotonic()
    with within(0.9), pytest.raises(ConnectionRefusedError):
        call()
    assert time.monotonic() - began > 0.2
    (lost,) = [each for each in heard if isinstance(each, mulligan.StoreLost)]
    assert lost.because == (
        "a dead letter waits in a file of this machine (no answer within 250 ms)"
    )
    box = DeadLetters(place.store)
    assert len(box.spooled()) == 1
    store.answer()
    (record,) = box.all()  # one letter in two places
    hook.is_up = True
    mark = box.replay(record)
    assert mark is not None
    assert mark.state == "replayed"
    assert len(hook.got) == 1


@pytest.mark.real
@pytest.mark.parametrize("world", ["asyncio", "trio"])
def test_a_caller_that_is_cancelled_while_its_letter_is_written_loses_none(
    place, world, cancelled_once, monkeypatch
):
    from mulligan.dead_letters import storage

    monkeypatch.setattr(storage, "_PATIENCE", 30.0)  # cancelled in the midst of it, however busy
    store, hook = Slow(place.store), Hook(loop=world)
    slow = guard(place, store=store, attempts=1)

    async def call():
        await slow.acall(hook.function, "https://a.b", {"n": 1}, token=SECRET)

    cancelled_once(world, store.asked, call)
    assert len(DeadLetters(place.store).all()) == 1
    store.answer()


def test_a_store_that_raises_what_it_should_not_costs_no_letter(place, hook, caplog):
    class Closed(Slow):
        def append(self, stream, entry):
            raise ValueError("I/O operation on closed file")

    fail(place, hook, store=Closed(place.store))
    assert len(DeadLetters(place.store).spooled()) == 1
    assert "test:down: no answer (ValueError)" in caplog.text


def test_an_address_that_cannot_be_meant_costs_no_letter(hook, monkeypatch, caplog):
    with pytest.raises(mulligan.SettingError, match="a store needs an address"):
        Guard("hooks", dead_letters="mongo:x")
    with pytest.raises(mulligan.SettingError, match="dead_letters needs True, a store or its"):
        Guard("hooks", dead_letters=5)  # type: ignore[arg-type]
    monkeypatch.setenv("MULLIGAN_STORE", "mongo:x")
    with pytest.raises(ConnectionRefusedError):
        mulligan.retry(attempts=1, dead_letters=True)(hook.function)("u", 1, "t")
    assert "a store needs an address" in caplog.text
    assert len(DeadLetters("memory:").spooled()) == 1


def test_without_a_store_letters_go_to_a_file_of_this_users(hook, monkeypatch, tmp_path):
    monkeypatch.delenv("MULLIGAN_STORE", raising=False)
    with pytest.raises(ConnectionRefusedError):
        mulligan.retry(attempts=1, dead_letters=True)(hook.function)("u", 1, "t")
    assert (tmp_path / "home" / "mulligan.journal.db").exists()
    assert len(DeadLetters().all()) == 1


def test_blocks_are_not_written_down():
    with pytest.raises(mulligan.SettingError, match=r"attempts\(\) takes no dead_letters"):
        mulligan.attempts(dead_letters=True).__iter__()


def test_a_replay_that_was_killed_is_taken_up_after_its_lease(place, hook, monkeypatch):
    from mulligan.dead_letters import replay

    monkeypatch.setattr(replay, "_LEASE", 0.3)
    fail(place, hook)
    hook.is_up = True
    box = DeadLetters(place.store)
    (record,) = box.all()
    dead = replay._holding(box._letters, record.letter)
    place.store.keys.transact(dead.terms.place, dead.take())
    box._letters.mark(record.letter, Mark(state="replaying", at=0))
    assert box.replay(record) is None
    place.lapse(dead.terms.place, 0.35)
    mark = box.replay(record)
    assert mark is not None
    assert (mark.state, len(hook.got)) == ("replayed", 1)


def test_a_letter_that_can_be_written_nowhere_is_said_aloud(
    place, hook, tmp_path, monkeypatch, caplog
):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "file"))
    fail(place, hook, store=Down(place.store))
    assert "could be written neither to the store (test:down: no answer) nor to a file" in (
        caplog.text
    )
    assert SECRET not in caplog.text


def test_no_secret_is_in_any_file(tmp_path, hook):
    """Planted: an argument, a message, a key, a target, on SQLite and in the spool."""

    def leaky(url, body, token):
        raise ConnectionRefusedError(f"401 for {token} at https://user:{SECRET}@host")

    replayable("leaky", secrets=("token",))(leaky)
    url = f"sqlite:{tmp_path / 'state.db'}"
    from mulligan.stores.open import open_store

    for store in (url, Down(open_store(url))):
        options: Any = {"attempts": 1, "effects": "read", "breaker": False}
        leak = Guard("hooks", store=store, dead_letters=True, **options)
        for call in (
            lambda: leak.call(leaky, "u", 1, SECRET),  # noqa: B023 -- called at once
            lambda: leak.call(leaky, f"https://h/?token={SECRET}", 1, SECRET),  # noqa: B023 -- at once
            lambda: leak.call(leaky, "u", {"a": {"api_key": SECRET}}, SECRET),  # noqa: B023 -- at once
            lambda: leak.once(Once(SECRET), leaky, "u", 1, SECRET),  # noqa: B023 -- at once
        ):
            with pytest.raises(ConnectionRefusedError):
                call()
    assert len(DeadLetters(url).all()) == 8
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.parent.name == "dead" for path in files)
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path
