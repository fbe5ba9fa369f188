"""Who may read and change what: token, cookie, Host, Origin and CSRF checks, and headers.

A page of another site can make a browser send requests to loopback. It cannot read the answers, it
cannot set `X-CSRF-Token`, it names its own Origin, and `SameSite=Strict` keeps our cookie from it.
A host name of an attacker that resolves to 127.0.0.1 is refused by its Host header.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("HEADERS", "Access", "RefusedRequest", "is_loopback")

# Headers of proxies: what they pass on does not come from this machine's user.
_FORWARDED = frozenset({"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"})

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class RefusedRequest(NamedTuple):
    """Why a request is refused."""

    status: int
    error: str
    hint: str


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens at `host`."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Access:
    """The rules of one server.

    Args:
        token: Must be known to change anything; to read, too, unless `is_open`.
        host: Where it listens.
        port: On which port.
        names: Further names that browsers may call it by; with one, reading needs the token.
        is_read_only: Whether nothing may be changed at all.
        is_private: Whether reading needs the token on loopback, too; elsewhere it always does.
    """

    def __init__(
        self,
        token: str,
        *,
        host: str,
        port: int,
        names: tuple[str, ...] = (),
        is_read_only: bool = False,
        is_private: bool = False,
    ) -> None:
        self.token, self.is_read_only = token, is_read_only
        # Cookies know no ports: two dashboards on one machine must not take each other's.
        self.cookie = f"mulligan_token_{port}"
        names = tuple(each.lower() for each in names)
        # A further name means a proxy: then a request from loopback may come from anywhere.
        self.is_open = is_loopback(host) and not is_private and all(map(is_loopback, names))
        loopback = ("127.0.0.1", "localhost", "[::1]")
        shown = f"[{host}]" if ":" in host else host
        self._hosts = {f"{each}:{port}" for each in (*loopback, shown, *names)}
        self._hosts |= set(names)  # behind a proxy that listens on the usual port

    @property
    def csrf(self) -> str:
        """What a page of ours sends with each change; a page of others cannot read it."""
        return hmac.new(self.token.encode(), b"csrf", sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def is_known(self, headers: Mapping[str, str]) -> bool:
        """Whether a request carries the token, in its cookie or its Authorization header."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.is_token(given.strip()):
            return True
        # By hand: one malformed cookie of another server of this host must not hide ours.
        cookies = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
        return any(name == self.cookie and self.is_token(value) for name, _, value in cookies)

    def refusal(
        self, method: str, headers: Mapping[str, str], *, is_login: bool
    ) -> RefusedRequest | None:
        """Why a request must not be answered; None if it may."""
        refused = self._from_elsewhere(method, headers)
        if refused is not None or is_login:
            return refused
        is_reading = method in {"GET", "HEAD"}
        is_open = self.is_open and not any(each in headers for each in _FORWARDED)
        if not self.is_known(headers) and not (is_reading and is_open):
            return RefusedRequest(
                401,
                "this needs the token of the dashboard",
                "open the link that mulligan dashboard printed",
            )
        return None if is_reading else self._unwanted_change(headers)

    def _from_elsewhere(self, method: str, headers: Mapping[str, str]) -> RefusedRequest | None:
        if headers.get("host", "").lower() not in self._hosts:
            return RefusedRequest(
                421,
                "this server does not answer to that host name",
                "open it as 127.0.0.1, or name the host with mulligan dashboard --name",
            )
        origin = headers.get("origin")
        scheme, _, host = (origin or "").partition("://")
        is_ours = scheme in {"http", "https"} and host in self._hosts
        is_foreign = origin is not None and not is_ours
        # A link on another site may lead here; nothing else of it may.
        is_link = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
        is_cross = headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}
        if is_foreign or (is_cross and not is_link):
            return RefusedRequest(403, "requests of other sites are refused", "use the page itself")
        return None

    def _unwanted_change(self, headers: Mapping[str, str]) -> RefusedRequest | None:
        if self.is_read_only:
            return RefusedRequest(
                403, "this dashboard is read-only", "start it without --read-only to change things"
            )
        # A script that sends the token in a header is no browser, and has no page of ours.
        is_script = "authorization" in headers and "cookie" not in headers
        given = headers.get("x-csrf-token", "")
        is_page = "origin" in headers and hmac.compare_digest(given.encode(), self.csrf.encode())
        if is_script or is_page:
            return None
        return RefusedRequest(
            403, "the request does not come from the page", "reload the page and try again"
        )
