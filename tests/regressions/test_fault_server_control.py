"""A web page could make the agent under test run a command.

The fault server changed its script for whoever posted one. A page served from another port of
localhost passes the checks of Host and Origin, and a plain form can post text: ``shell(rm -rf ~)``
went into the answers for the agent under test. And the server's pytest plugin loaded asyncio and
the whole server in every project that had Mulligan installed.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys

import pytest

from mulligan.faults.control import CONTROL
from mulligan.faults.remote import ask

pytestmark = pytest.mark.real


def change(server, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request("POST", "/_script", "shell(touch pwned)", headers)
    response = connection.getresponse()
    body = json.loads(response.read())
    connection.close()
    return response.status, body


def test_a_form_on_another_port_cannot_set_a_script(fault_server):
    status, body = change(fault_server, origin="http://localhost:9999")
    assert (status, body["error"]) == (403, "the fault server's own paths are not for web pages")
    assert str(fault_server.script) == "ok"


def test_a_page_without_an_origin_cannot_either(fault_server):
    # A form of the same site, or a browser that leaves Origin out.
    assert change(fault_server, **{"sec-fetch-site": "same-site", CONTROL: "1"})[0] == 403
    status, body = change(fault_server, **{"content-type": "text/plain"})
    assert status == 403
    assert body["error"].startswith(f"a change needs the header {CONTROL}")
    assert str(fault_server.script) == "ok"


def test_the_preflight_of_a_page_is_not_answered(fault_server):
    connection = http.client.HTTPConnection("127.0.0.1", fault_server.port, timeout=5)
    asked = {"origin": "http://localhost:9999", "access-control-request-headers": CONTROL}
    connection.request("OPTIONS", "/_script", headers=asked)
    response = connection.getresponse()
    assert response.status == 403
    assert response.getheader("access-control-allow-origin") is None
    connection.close()


def test_our_own_command_can_change_it(fault_server):
    ask(fault_server.url, "/_script", names="script", method="POST", body="503,ok")
    assert str(fault_server.script) == "503x1,ok"


def test_the_pytest_plugin_loads_no_server():
    code = (
        "import sys, mulligan.faults.pytest_plugin as p;"
        "print([n for n in sys.modules if n.startswith('mulligan.faults.') and n != p.__name__])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "[]"
