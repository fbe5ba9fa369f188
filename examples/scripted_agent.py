#!/usr/bin/env python3
"""An agent program that does what a script says, in the output format of Claude Code.

It is no agent: nothing is asked of any provider. It keeps its sessions in a folder, so that what
was done before an interruption is there when it is resumed, and each start takes the next word
of its script:

    ok            answers
    work:1        takes a second for a step, then goes on with the next word
    effect        runs a tool: a line is added to the file effects.txt, once a session
    write:a.txt   writes a file
    note:a.txt    says whether there is such a file
    limit:4       a usage limit that resets in 4 seconds
    opus:4        the same, for one family of models
    crash         dies by SIGKILL
    stall         falls silent
    overloaded    the provider is at capacity
    login         its key is not accepted

    SCRIPT="effect limit:3 ok" SESSIONS=/tmp/s  claude -p "Port the tests"
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import uuid
from pathlib import Path

ERRORS = {
    "overloaded": (529, "overloaded_error", "server_error", "API Error: 529 Overloaded"),
    "login": (401, "authentication_error", "authentication_failed", "Invalid API key"),
    "toolong": (400, "invalid_request_error", "invalid_request", "Prompt is too long"),
    "billing": (400, "invalid_request_error", "billing_error", "Credit balance is too low"),
    "reset": (None, "", "unknown", "API Error: Connection to the API was lost (ECONNRESET)"),
}
COST = 0.04


class Session:
    """What it remembers between two starts."""

    def __init__(self, folder: Path, id_: str) -> None:
        self.id, self.file = id_, folder / f"{id_}.json"
        self.lines: list[str] = json.loads(self.file.read_text()) if self.file.exists() else []

    def add(self, line: str) -> None:
        self.lines.append(line)
        # In one step: it may be killed in the middle, and a session must be there when it resumes.
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.lines))
        new.replace(self.file)


def option(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else ""


def say(event: dict[str, object]) -> None:
    if option("--output-format") == "stream-json":
        print(json.dumps(event), flush=True)


def next_word(folder: Path) -> str:
    """The next word of the script, and the one after it at the next start."""
    words = os.environ.get("SCRIPT", "ok").split()
    counter = folder / "counter"
    at = int(counter.read_text()) if counter.exists() else 0
    turned = folder / f"counter.{os.getpid()}"
    turned.write_text(str(at + 1))
    turned.replace(counter)
    return words[at] if at < len(words) else "ok"


def result(session: Session, text: str, *, error: tuple[int | None, str] | None = None) -> int:
    say(
        {
            "type": "result",
            "subtype": "success",
            "is_error": error is not None,
            "api_error_status": error[0] if error else None,
            "api_error_type": error[1] if error else None,
            "terminal_reason": "api_error" if error else "completed",
            "result": text,
            "session_id": session.id,
            "total_cost_usd": COST,
            "usage": {"input_tokens": 900, "output_tokens": 100},
        }
    )
    if option("--output-format") != "stream-json":
        print(text, flush=True)
    return 1 if error else 0


def speak(session: Session, text: str) -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    say({"type": "assistant", "message": message, "session_id": session.id})


def act(word: str, session: Session) -> int | None:  # noqa: PLR0911 -- one a word
    """Do what the word says; None to go on with the next."""
    name, _, argument = word.partition(":")
    if name == "ok":
        speak(session, "All done.")
        steps = len(session.lines)
        return result(session, f"All done, after {steps} step{'s' if steps != 1 else ''}.")
    if name == "work":
        time.sleep(float(argument or 0))
        speak(session, "One step done.")
        session.add("step")
        return None
    if name == "effect":
        if "effect" not in session.lines:
            session.add("effect")  # first: a tool that ran must not run again
            with Path("effects.txt").open("a") as file:
                file.write(f"{session.id}\n")
        speak(session, "Ran the tool.")
        return None
    if name == "write":
        Path(argument).write_text(f"written by {Path(argument).stem}\n")
        speak(session, "Wrote a file.")
        session.add("write")
        return None
    if name == "note":
        speak(session, f"{argument} {'exists' if Path(argument).exists() else 'does not exist'}")
        return None
    if name in {"limit", "opus"}:
        now = float(os.environ.get("NOW") or time.time())  # tests have a time of their own
        resets_at = int(now + float(argument or 3)) + 1
        window = "five_hour" if name == "limit" else "seven_day_opus"
        info = {"status": "rejected", "resetsAt": resets_at, "rateLimitType": window}
        say({"type": "rate_limit_event", "rate_limit_info": info, "session_id": session.id})
        clock = time.strftime("%I:%M%p", time.gmtime(resets_at)).lstrip("0").lower()
        which = "session" if name == "limit" else "Opus"
        text = f"You've hit your {which} limit · resets {clock} (UTC)"
        return result(session, text, error=(429, "rate_limit_error"))
    if name == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "stall":
        time.sleep(float(argument or 3600))
        return None
    status, kind, _, text = ERRORS[name]
    return result(session, text, error=(status, kind))


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # it ends without a word when it is told to
    folder = Path(os.environ.get("SESSIONS") or tempfile.mkdtemp(prefix="scripted-"))
    folder.mkdir(exist_ok=True)
    resumed = option("--resume")
    session = Session(folder, resumed or option("--session-id") or str(uuid.uuid4()))
    if resumed and not session.file.exists():
        print(f"No conversation found with session ID: {resumed}", file=sys.stderr)
        return 1
    session.add("resumed" if resumed else "started")
    say({"type": "system", "subtype": "init", "session_id": session.id})
    while True:
        code = act(next_word(folder), session)
        if code is not None:
            return code


if __name__ == "__main__":
    sys.exit(main())
