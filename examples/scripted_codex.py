#!/usr/bin/env python3
"""An agent program that does what a script says, in the output format of Codex.

The sibling of `scripted_agent`: nothing is asked of any provider, sessions lie in a folder, and
each start takes the next words of its script until one of them ends it:

    ok            answers
    work:1        takes a second for a step, then goes on with the next word
    effect        runs a tool: a line is added to the file effects.txt, once a session
    crash         dies by SIGKILL
    stall         falls silent
    lost          loses its connection, after a try of its own

    SCRIPT="effect crash ok" SESSIONS=/tmp/s  codex exec "Port the tests"
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


class Codex:
    """One start of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.is_json = folder, "--json" in sys.argv
        words = [each for each in sys.argv[1:] if not each.startswith("-")]
        resumed = words[words.index("resume") + 1] if "resume" in words else ""
        self.id, self.items = resumed or str(uuid.uuid4()), 0
        self.file = folder / self.id
        self.done: list[str] = self.file.read_text().split() if self.file.exists() else []

    def say(self, kind: str, **fields: object) -> None:
        if self.is_json:
            print(json.dumps({"type": kind, **fields}), flush=True)

    def item(self, kind: str, *, is_begun: bool = False, **fields: object) -> None:
        item = {"id": f"item_{self.items}", "type": kind, **fields}
        self.say("item.started" if is_begun else "item.completed", item=item)
        self.items += not is_begun

    def speak(self, text: str) -> None:
        self.item("agent_message", text=text)
        if not self.is_json:
            print(text, flush=True)

    def remember(self, word: str) -> None:
        self.done.append(word)
        self.file.write_text("\n".join(self.done))

    def act(self, word: str) -> int | None:
        """Do what the word says; None to go on with the next."""
        name, _, argument = word.partition(":")
        if name == "work":
            time.sleep(float(argument or 0))
            self.item("reasoning", text="One more file is ported.")
            self.remember("step")
        elif name == "effect":
            self.tool()
        elif name == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        elif name == "stall":
            time.sleep(float(argument or 3600))
        elif name == "lost":
            self.say("error", message="Reconnecting... 1/1")
            error = "stream disconnected before completion: connection reset by peer"
            self.say("turn.failed", error={"message": error})
            return 1
        else:
            self.speak("All tests are ported.")
            self.say("turn.completed", usage={"input_tokens": 8200, "output_tokens": 640})
            return 0
        return None

    def tool(self) -> None:
        command = "git mv tests/unit tests"
        self.item("command_execution", is_begun=True, command=command)
        if "effect" not in self.done:
            with Path("effects.txt").open("a") as file:
                file.write(f"{self.id}\n")
            self.remember("effect")
        self.item("command_execution", command=command, exit_code=0, aggregated_output="")

    def next_word(self) -> str:
        words = os.environ.get("SCRIPT", "ok").split()
        counter = self.folder / "counter"
        at = int(counter.read_text()) if counter.exists() else 0
        counter.write_text(str(at + 1))
        return words[at] if at < len(words) else "ok"

    def run(self) -> int:
        self.remember("started")
        self.say("thread.started", thread_id=self.id)
        self.say("turn.started")
        while True:
            code = self.act(self.next_word())
            if code is not None:
                return code


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # it ends without a word when it is told to
    folder = Path(os.environ.get("SESSIONS") or tempfile.mkdtemp(prefix="scripted-"))
    folder.mkdir(exist_ok=True)
    return Codex(folder).run()


if __name__ == "__main__":
    sys.exit(main())
