"""The fixture that users get by installing Mulligan."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def test_the_fixture_gives_virtual_time(virtual_clock):
    import mulligan
    from mulligan.testing import Scripted

    assert mulligan.call(Scripted(ConnectionRefusedError(), "ok")) == "ok"
    assert virtual_clock.sleeps == [0.25]


@pytest.mark.real
def test_the_fixture_is_found_in_a_project_that_only_installed_mulligan(pytester):
    pytester.makepyfile(
        """
        import mulligan
        from mulligan.testing import Scripted, status_error

        @mulligan.retry(effects="read", in_place="6h")
        def nightly():
            return script()

        script = Scripted(status_error(429, headers={"retry-after": "18000"}), "done")

        def test_the_night_is_over_in_no_time(virtual_clock):
            assert nightly() == "done"
            assert virtual_clock.now() == 18000

        def test_each_test_has_a_clock_of_its_own(virtual_clock):
            assert virtual_clock.now() == 0
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:randomly", timeout=60)
    result.assert_outcomes(passed=2)


@pytest.mark.real
def test_the_fixture_has_a_description(pytester):
    result = pytester.runpytest_subprocess("--fixtures", timeout=60)
    result.stdout.fnmatch_lines(["virtual_clock*", "*every guard in this test sleeps on*"])
