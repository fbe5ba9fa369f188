"""What `import mulligan` loads: itself, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.real


def loaded_by(code):
    """The modules that `code` loads in a fresh interpreter, beyond those that are always there."""
    script = (
        "import json, sys\n"
        "before = set(sys.modules)\n"
        f"{code}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def tops(modules):
    return {name.partition(".")[0] for name in modules}


# `dataclasses` is loaded on purpose, before a failure needs it inside of an event loop.
HEAVY = {"asyncio", "logging", "threading", "random", "trio", "email"}


def test_importing_mulligan_loads_mulligan_and_nothing_else():
    modules = loaded_by("import mulligan")
    assert modules - {"__future__"} == {"mulligan"}


def test_importing_the_package_of_plans_loads_none_of_its_modules():
    assert loaded_by("import mulligan.run") - {"__future__"} == {"mulligan", "mulligan.run"}


DECORATED = """
import mulligan

@mulligan.retry(effects="read")
def fetch():
    return "ok"
"""


@pytest.mark.parametrize("code", [DECORATED, DECORATED + "fetch()"], ids=["defined", "called"])
def test_a_decorated_function_loads_neither_core_nor_loop_nor_logging(code):
    modules = loaded_by(code)
    assert not tops(modules) & HEAVY
    assert not {name for name in modules if name.startswith("mulligan.core")}
    assert not {name for name in modules if name.startswith("mulligan.classify")}


@pytest.mark.parametrize("code", [DECORATED, DECORATED + "fetch()"], ids=["defined", "called"])
def test_a_decorated_function_loads_no_third_party_module(code):
    assert tops(loaded_by(code)) - {"mulligan"} <= sys.stdlib_module_names


def test_a_decorated_coroutine_function_loads_no_loop():
    modules = loaded_by(
        'import mulligan\n@mulligan.retry(effects="read")\nasync def fetch():\n    return "ok"\n'
    )
    assert not tops(modules) & HEAVY


FAILING = """
import mulligan
from time import monotonic

@mulligan.retry(effects="read", attempts=1)
def fetch():
    raise ConnectionRefusedError

import sys
sys.modules["logging"] = None  # importing it fails from here on
try:
    mulligan.Guard(attempts=1, listeners=[lambda event: None]).call(fetch.__wrapped__)
except ConnectionRefusedError:
    pass
"""


def test_a_failure_loads_no_third_party_module_no_loop_and_no_logging():
    modules = loaded_by(FAILING)
    assert "mulligan.core.decide" in modules
    assert "asyncio" not in modules
    assert tops(modules) - {"mulligan"} <= sys.stdlib_module_names


def test_no_public_name_loads_a_third_party_module_but_the_reader_of_files():
    modules = loaded_by(
        "import mulligan\n"
        "for name in set(mulligan.__all__) - {'load_policy'}: getattr(mulligan, name)"
    )
    assert tops(modules) - {"mulligan"} <= sys.stdlib_module_names


FIRST_FAILURE = """
import json, sys
import mulligan

{made}

class Limited(Exception):
    status_code, headers = 429, {{"retry-after": "0.001"}}

answers = []

def flaky():
    answers.append(0)
    if len(answers) == 1:
        raise Limited("too many requests")

before = set(sys.modules)
{call}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.mark.parametrize(
    ("made", "call", "most"),
    [
        ("guarded = mulligan.retry(lambda: flaky())", "guarded()", 75),
        ('guard = mulligan.Guard("acme")', "guard.call(flaky)", 40),
    ],
    ids=["retry", "guard"],
)
def test_the_first_failure_loads_what_it_needs(made, call, most):
    """It loaded 120 modules in 83 ms, while the event loop stood still."""
    script = FIRST_FAILURE.format(made=made, call=call)
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    late = set(json.loads(done.stdout))
    unneeded = {"asyncio", "dataclasses", "email", "hashlib", "logging", "random", "zoneinfo"}
    assert not tops(late) & unneeded
    assert not late & {
        "mulligan.core.events",
        "mulligan.once.claims",
        "mulligan.shared.guard_target",
    }
    assert not {name for name in late if name.startswith("mulligan.stores")}
    assert len(late) <= most
