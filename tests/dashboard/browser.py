"""A small WebDriver client for a headless Chromium, over plain HTTP."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")


class Browser:
    """One window of a Chromium."""

    def __init__(self, port: int, session: str) -> None:
        self._base = f"http://127.0.0.1:{port}/session/{session}"

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        return send(f"{self._base}/{path}", method, body)

    def open(self, url: str) -> None:
        self._send("POST", "url", {"url": url})

    def run(self, script: str, *args: Any) -> Any:
        """Run JavaScript; a promise that it returns is awaited."""
        return self._send("POST", "execute/sync", {"script": script, "args": list(args)})

    def text(self, selector: str = "main") -> str:
        found = self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)
        assert isinstance(found, str)
        return found

    def until(self, script: str, *args: Any, timeout: float = 15.0) -> Any:
        """Wait until JavaScript returns something true."""
        ends_at = time.monotonic() + timeout
        while True:
            found = self.run(script, *args)
            if found:
                return found
            if time.monotonic() > ends_at:
                raise AssertionError(f"never true: {script}\n{self.text('body')[:2000]}")
            time.sleep(0.1)

    def until_text(self, words: str, selector: str = "main", timeout: float = 15.0) -> None:
        self.until(
            "return (document.querySelector(arguments[0])?.innerText ?? '').includes(arguments[1])",
            selector,
            words,
            timeout=timeout,
        )

    def click(self, selector: str) -> None:
        self.until("return document.querySelector(arguments[0]) !== null", selector)
        self.run("document.querySelector(arguments[0]).click()", selector)

    def devtools(self, command: str, **params: Any) -> Any:
        return self._send("POST", "goog/cdp/execute", {"cmd": command, "params": params})

    def screenshot(self, path: Path, *, width: int, height: int, is_dark: bool) -> None:
        self.look(width=width, height=height, is_dark=is_dark)
        time.sleep(0.6)  # transitions
        shot = self.devtools("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    def look(self, *, width: int, height: int, is_dark: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def logged(self) -> list[str]:
        """What the console says about errors, violations of the CSP among them."""
        return [each["message"] for each in self._send("POST", "se/log", {"type": "browser"})]


def send(url: str, method: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(json.load(error)["value"]["message"]) from None


@contextmanager
def chromium(zone: str = "Europe/Berlin"):
    """A headless Chromium of its own."""
    assert DRIVER is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profile = tempfile.mkdtemp(prefix="mulligan-chromium-")
    driver = subprocess.Popen(
        [DRIVER, f"--port={port}", "--log-level=OFF"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TZ": zone},
    )
    try:
        ends_at = time.monotonic() + 30
        while True:
            with suppress(OSError):
                send(f"http://127.0.0.1:{port}/status", "GET")
                break
            assert time.monotonic() < ends_at, "chromedriver did not start"
            time.sleep(0.1)
        flags = [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--no-first-run", "--hide-scrollbars", "--lang=en-GB"),
            f"--user-data-dir={profile}",
        ]
        wants = {
            "goog:chromeOptions": {"args": flags, "binary": CHROMIUM},
            "goog:loggingPrefs": {"browser": "ALL"},
            "unhandledPromptBehavior": "accept",
        }
        made = send(
            f"http://127.0.0.1:{port}/session", "POST", {"capabilities": {"alwaysMatch": wants}}
        )
        browser = Browser(port, made["sessionId"])
        try:
            yield browser
        finally:
            send(f"http://127.0.0.1:{port}/session/{made['sessionId']}", "DELETE")
    finally:
        driver.terminate()
        driver.wait(10)
        shutil.rmtree(profile, ignore_errors=True)
