"""Secrets in the environment: values of variables whose names say that they are secret.

CI systems mask such values wherever they appear, and so does Mulligan: a key without a published
prefix, printed without a name beside it, can be recognised in no other way.
"""

from __future__ import annotations

import os
import time

from ..core.redaction import SHORTEST_SECRET, take_secret_values_from

TYPE_CHECKING = False  # typing and re are loaded by the first failure, not by the first import
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("MaskingSecretsOf", "is_secret_name", "mask_environment_secrets", "secret_values")

# Words that make a variable's name secret, between underscores: DB_PASSWORD, OPENAI_API_KEY.
_WORDS = frozenset(
    (
        *("KEY", "KEYS", "APIKEY", "APIKEYS", "TOKEN", "TOKENS", "SECRET", "SECRETS", "JWT"),
        *("PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "PASS", "PWD", "PSK", "PAT"),
        *("CREDENTIAL", "CREDENTIALS", "CREDS", "COOKIE", "COOKIES", "AUTH", "DSN", "WEBHOOK"),
    )
)
# What each of these words contains: most names have none of it, and are done after one search.
_STEMS = r"(?i)KEY|TOKEN|SECRET|JWT|PASS|PWD|PSK|PAT|CRED|COOKIE|AUTH|DSN|WEBHOOK"
# PGPASSWORD, AUTHTOKEN, MYSECRET: no underscore in between.
_ENDINGS = ("PASSWORD", "PASSWD", "TOKEN", "SECRET", "APIKEY", "PASSPHRASE", "CREDENTIALS")
# What stands last and makes the value a place, a kind or a number: SSH_AUTH_SOCK, TOKEN_TYPE.
_HARMLESS = frozenset(
    (
        *("SOCK", "PATH", "FILE", "FILES", "DIR", "HOME", "URL", "URI", "HOST", "PORT", "ID"),
        *("TYPE", "MODE", "METHOD", "NAME", "ENABLED", "DISABLED", "LIMIT", "TTL", "SCHEME"),
        *("MAX", "MIN", "COUNT", "LENGTH", "SIZE", "FORMAT", "VERSION", "PROVIDER", "BACKEND"),
    )
)
# The shell's own: the current folder and the one before.
_FOLDERS = frozenset({"PWD", "OLDPWD", "INIT_CWD"})
# DB_PASSWORD, db-password, dbPassword
_BETWEEN_WORDS = r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])"
# scheme://user:secret@host
_USERINFO = r"[A-Za-z][A-Za-z0-9+.-]*://[^:/@\s]*:(?P<secret>.+)@"

# A program may load its keys after it has imported us, so the environment is read again.
_FRESH_SECONDS = 1.0


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds a secret."""
    import re

    if re.search(_STEMS, name) is None or name.upper() in _FOLDERS:
        return False
    words = [word.upper() for word in re.split(_BETWEEN_WORDS, name) if word]
    if not words or words[-1] in _HARMLESS:
        return False
    return any(word in _WORDS or word.endswith(_ENDINGS) for word in words)


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Every form in which a secret of `environ` may be printed, the longest first."""
    import re

    found: set[str] = set()
    for name, value in environ.items():
        if is_secret_name(name):
            # A key of several lines is shown on one, or cut: each line counts for itself.
            found.update(line.strip() for line in value.splitlines())
        elif (userinfo := re.match(_USERINFO, value)) is not None:
            found.add(userinfo["secret"])
    found = {value for value in found if len(value) >= SHORTEST_SECRET and not value.isspace()}
    for value in tuple(found):
        found.update(_encoded(value))
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def _encoded(value: str) -> tuple[str, ...]:
    """`value` as it stands in an address or in JSON, where that differs."""
    if value.isalnum():
        return ()
    import json
    from urllib.parse import quote

    return quote(value, safe=""), json.dumps(value)[1:-1]


class _Values:
    """The secret values of the process's environment, read again after a second.

    Attributes:
        given: Those of other environments, while `MaskingSecretsOf` lasts.
    """

    def __init__(self) -> None:
        self.given: list[tuple[str, ...]] = []
        self._values: tuple[str, ...] = ()
        self._read_at = float("-inf")

    def __call__(self) -> tuple[str, ...]:
        now = time.monotonic()
        if now - self._read_at > _FRESH_SECONDS:
            found = set(secret_values(os.environ)).union(*self.given)
            self._values = tuple(sorted(found, key=lambda value: (-len(value), value)))
            self._read_at = now
        return self._values

    def read_again(self) -> None:
        """Read the environment at the next call."""
        self._read_at = float("-inf")


_values = _Values()


def mask_environment_secrets() -> None:
    """Mask the values of secret variables in everything that this process shows or stores."""
    _values.read_again()
    take_secret_values_from(_values)


class MaskingSecretsOf:
    """A context in which the secrets of an environment that is not our own are masked as well."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._secrets = secret_values(environ)

    def __enter__(self) -> None:
        _values.given.append(self._secrets)
        mask_environment_secrets()

    def __exit__(self, *_error: object) -> None:
        _values.given.remove(self._secrets)
