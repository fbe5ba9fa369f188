"""The time zone of this machine.

`TZ` first, then the link that /etc/localtime is; a name is worth more than an offset, because only
a name knows when the clocks change.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta, timezone, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("local_zone",)


def local_zone(
    *, environ: Mapping[str, str] | None = None, link: Path = Path("/etc/localtime")
) -> tzinfo:
    """The host's zone: by name if it has one, else its offset of today."""
    stated = (os.environ if environ is None else environ).get("TZ", "").removeprefix(":")
    for name in (stated, _name_of(link)):
        if not name:
            continue
        try:
            return ZoneInfo(name.rpartition("zoneinfo/")[2])
        except (KeyError, ValueError, OSError):
            continue
    return timezone(timedelta(seconds=time.localtime().tm_gmtoff))


def _name_of(link: Path) -> str:
    try:
        return str(link.resolve()).rpartition("zoneinfo/")[2]
    except (OSError, RuntimeError):
        return ""
