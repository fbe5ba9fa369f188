from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from mulligan.config.zone import local_zone


@pytest.mark.parametrize(
    "stated", ["Europe/Berlin", ":Europe/Berlin", "/usr/share/zoneinfo/Europe/Berlin"]
)
def test_tz_names_the_zone(stated, tmp_path):
    assert local_zone(environ={"TZ": stated}, link=tmp_path / "none") == ZoneInfo("Europe/Berlin")


def test_the_link_names_it_where_tz_does_not(tmp_path):
    target = tmp_path / "zoneinfo" / "Asia" / "Tokyo"
    target.parent.mkdir(parents=True)
    target.touch()
    link = tmp_path / "localtime"
    link.symlink_to(target)
    assert local_zone(environ={}, link=link) == ZoneInfo("Asia/Tokyo")


def test_a_host_without_a_name_has_an_offset(tmp_path):
    zone = local_zone(environ={"TZ": "no such zone"}, link=tmp_path / "none")
    assert zone.utcoffset(datetime(2026, 1, 1, tzinfo=UTC)) is not None
