"""Names for accounts that do not give the account away."""

from __future__ import annotations

from hashlib import blake2b

__all__ = ("scoped",)


def scoped(scope: str, salt: str) -> str:
    """A salted hash of `scope`; empty for no scope.

    The salt lives in the store, so that all who share it agree, and nobody who finds a key
    elsewhere can tell which entry is its.
    """
    if not scope:
        return ""
    return blake2b(scope.encode(), key=salt.encode()[:64], digest_size=12).hexdigest()
