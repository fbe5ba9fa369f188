"""The name of a guard says what it stands for, and changes nothing about how it behaves.

What happened: the presets `default` and `skill` had another breaker for targets called
"anthropic". Guard("anthropic") gave up after three failures in a row where Guard("openai"), with
the same options against the same server, recovered at its fourth attempt.
"""

from __future__ import annotations

import pytest

import mulligan
from mulligan.core.presets import PRESETS, preset
from mulligan.testing import Scripted, status_error

NAMES = ["anthropic", "openai", "google", "my service"]


@pytest.mark.parametrize("name", PRESETS)
def test_no_preset_has_settings_for_names(name):
    assert dict(preset(name).breakers) == {}


# `subagent` cuts attempts, which plain functions cannot be.
@pytest.mark.parametrize("policy", sorted(set(PRESETS) - {"subagent"}))
def test_guards_of_any_name_do_the_same(drive, policy):
    down = [status_error(503)] * 4
    found = set()
    for name in NAMES:
        began = drive.clock.now()
        script = Scripted(*down, "ok")
        options = {"target": name, "policy": policy, "effects": "read", "in_place": "6h"}
        try:
            ended = drive.run(script, **options)
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is the same for all
            story = mulligan.story(error)
            assert story is not None
            ended = story.because.replace(name, "NAME")
        found.add((ended, len(script.calls), round(drive.clock.now() - began, 6)))
    assert len(found) == 1
