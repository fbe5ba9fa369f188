"""Client for a fault server in another process.

Proxies from the environment are not used: the server is on loopback, and a proxy's answer would be
taken for the server's.
"""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from ..errors import MulliganError, SettingError
from .control import CONTROL

__all__ = ("DEFAULT_PORT", "address", "ask")

DEFAULT_PORT = 8429
_TIMEOUT = 5.0


def address(url: str | None = None) -> str:
    """Where the server is: as given, else ``MULLIGAN_FAULTS_URL``, else the default port."""
    found = url or os.environ.get("MULLIGAN_FAULTS_URL") or f"http://127.0.0.1:{DEFAULT_PORT}"
    try:
        is_known = urlsplit(found).scheme in {"http", "https"} and bool(urlsplit(found).hostname)
    except ValueError:  # half an IPv6 address
        is_known = False
    if not is_known:
        raise SettingError(f"the server's address begins with http://; got {found!r}")
    return found.rstrip("/")


def ask(
    url: str,
    path: str,
    *,
    names: str,
    method: str = "GET",
    body: str | None = None,
    kind: str = "text/plain",
) -> dict[str, Any]:
    """Send one request to the server's own paths; its answer, or a MulliganError with the reason.

    `names` is a field that only a fault server's answer has; `kind` the content type of `body`.
    """
    data = None if body is None else body.encode()
    headers = {"content-type": kind, CONTROL: "1"}
    request = Request(url + path, data=data, method=method, headers=headers)  # noqa: S310 -- address() admits http only
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=_TIMEOUT) as response:
            found = json.load(response)
    except HTTPError as error:
        with error:
            raise MulliganError(_said(error)) from None
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise MulliganError(
            f"no fault server answers at {url} ({reason}); start one with: mulligan faults, "
            "or wait if its script contains a refuse, which closes the port"
        ) from None
    except ValueError:
        raise MulliganError(f"what answers at {url} is not a fault server") from None
    if not isinstance(found, dict) or names not in found:
        raise MulliganError(f"what answers at {url} is not a fault server")
    return found


def _said(error: HTTPError) -> str:
    try:
        said = json.load(error).get("error")
    except (ValueError, AttributeError):
        said = None
    return str(said or f"{error.url} answered {error.code}")
