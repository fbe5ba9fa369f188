"""Exceptions that are known by where they come from.

The key is the root package with the class name, looked up over the whole MRO: a subclass of a
known class is known, a stranger of the same name is not. Nothing is imported for it.
"""

from __future__ import annotations

import errno
from typing import NamedTuple

from ..core.failure import Kind, Reach

__all__ = (
    "BY_ERRNO",
    "CIRCLE",
    "CLIENT_ROOTS",
    "GARBLED",
    "KNOWN",
    "SDK_ROOTS",
    "Known",
    "find",
)


class Known(NamedTuple):
    """What is known about a class of exceptions.

    Args:
        kind: What failed.
        reach: How far the call came.
        is_retriable: False where repeating cannot help, whatever the kind's rule.
        wins: Whether the class says more than the status that the exception carries.
    """

    kind: Kind
    reach: Reach = Reach.MAYBE_APPLIED
    is_retriable: bool | None = None
    wins: bool = False


_LOST = Known(Kind.NETWORK)
_UNREACHED = Known(Kind.NETWORK, Reach.NEVER_SENT)
_TOO_LATE = Known(Kind.TIMEOUT)
_NOT_CONNECTED = Known(Kind.TIMEOUT, Reach.NEVER_SENT)
# A wrong address, an untrusted certificate, a circle of redirects: the caller's to repair (E-G4).
_MISTAKE = Known(Kind.CLIENT, Reach.NEVER_SENT, is_retriable=False, wins=True)
CIRCLE = Known(Kind.CLIENT, Reach.ANSWERED, is_retriable=False, wins=True)
# An answer that cannot be read does not prove that nothing was done.
GARBLED = Known(Kind.BAD_ANSWER)
_NO_KEY = Known(Kind.AUTH, Reach.NEVER_SENT, wins=True)

_HTTPX = {
    "TransportError": _LOST,
    "NetworkError": _LOST,
    "ProtocolError": _LOST,
    "TimeoutException": _TOO_LATE,
    "ConnectError": _UNREACHED,
    "ProxyError": _UNREACHED,
    "ConnectionNotAvailable": _UNREACHED,
    "ConnectTimeout": _NOT_CONNECTED,
    "PoolTimeout": _NOT_CONNECTED,
    "LocalProtocolError": _MISTAKE,
    "UnsupportedProtocol": _MISTAKE,
    "InvalidURL": _MISTAKE,
    "TooManyRedirects": CIRCLE,
    "DecodingError": GARBLED,
}
_SDK = {
    "APIConnectionError": _LOST,
    "APITimeoutError": _TOO_LATE,
    "APIResponseValidationError": GARBLED,
    "LengthFinishReasonError": GARBLED,
    "ContentFilterFinishReasonError": Known(Kind.CONTENT_POLICY, Reach.ANSWERED, wins=True),
    "WebSocketConnectionClosedError": _LOST,
    "CredentialsError": _NO_KEY,
}

KNOWN: dict[str, dict[str, Known]] = {
    "builtins": {
        "ConnectionError": _LOST,
        "ConnectionRefusedError": _UNREACHED,
        "TimeoutError": _TOO_LATE,
    },
    "http": {
        "IncompleteRead": _LOST,
        "BadStatusLine": _LOST,
        "InvalidURL": _MISTAKE,
    },
    "urllib": {"URLError": _LOST, "ContentTooShortError": _LOST},
    "ssl": {
        "SSLError": Known(Kind.CLIENT, is_retriable=False),
        "SSLCertVerificationError": _MISTAKE,
        "SSLEOFError": _LOST,
        "SSLZeroReturnError": _LOST,
    },
    "asyncio": {"IncompleteReadError": _LOST},
    "subprocess": {"TimeoutExpired": _TOO_LATE},
    "anyio": {"BrokenResourceError": _LOST, "EndOfStream": _LOST},
    "trio": {"BrokenResourceError": _LOST, "TooSlowError": _TOO_LATE},
    "websockets": {"ConnectionClosed": _LOST, "InvalidURI": _MISTAKE},
    "httpx": _HTTPX,
    "httpx2": _HTTPX,
    "httpcore": _HTTPX,
    "httpcore2": _HTTPX,
    "aiohttp": {
        "ClientConnectionError": _LOST,
        "ClientPayloadError": _LOST,
        "ClientConnectorError": _UNREACHED,
        "ServerTimeoutError": _TOO_LATE,
        "ConnectionTimeoutError": _NOT_CONNECTED,
        "ClientSSLError": _MISTAKE,
        "ClientConnectorCertificateError": _MISTAKE,
        "ServerFingerprintMismatch": _MISTAKE,
        "InvalidURL": _MISTAKE,
        "NonHttpUrlClientError": _MISTAKE,
        "TooManyRedirects": CIRCLE,
        "ContentTypeError": GARBLED,
    },
    "requests": {
        "ConnectionError": _LOST,
        "ChunkedEncodingError": _LOST,
        "RetryError": _LOST,
        "ProxyError": _UNREACHED,
        "Timeout": _TOO_LATE,
        "ConnectTimeout": _NOT_CONNECTED,
        "SSLError": _MISTAKE,
        "MissingSchema": _MISTAKE,
        "InvalidSchema": _MISTAKE,
        "InvalidURL": _MISTAKE,
        "InvalidHeader": _MISTAKE,
        "URLRequired": _MISTAKE,
        "TooManyRedirects": CIRCLE,
        "InvalidJSONError": GARBLED,
        "ContentDecodingError": GARBLED,
    },
    "urllib3": {
        "ProtocolError": _LOST,
        "IncompleteRead": _LOST,
        "MaxRetryError": _LOST,
        "ProxyError": _UNREACHED,
        "NewConnectionError": _UNREACHED,
        "TimeoutError": _TOO_LATE,
        "ConnectTimeoutError": _NOT_CONNECTED,
        "EmptyPoolError": _NOT_CONNECTED,
        "FullPoolError": _NOT_CONNECTED,
        "SSLError": _MISTAKE,
        "LocationValueError": _MISTAKE,
        "ProxySchemeUnsupported": _MISTAKE,
        "InvalidHeader": _MISTAKE,
        "DecodeError": GARBLED,
    },
    "botocore": {
        "HTTPClientError": _LOST,
        "ConnectionError": _UNREACHED,
        "ConnectionClosedError": _LOST,
        "ReadTimeoutError": _TOO_LATE,
        "ConnectTimeoutError": _NOT_CONNECTED,
        "SSLError": _MISTAKE,
        "ParamValidationError": _MISTAKE,
        "NoRegionError": _MISTAKE,
        "NoCredentialsError": _NO_KEY,
        "PartialCredentialsError": _NO_KEY,
        "NoAuthTokenError": _NO_KEY,
        "TokenRetrievalError": _NO_KEY,
        "UnauthorizedSSOTokenError": _NO_KEY,
    },
    "openai": _SDK,
    "anthropic": _SDK,
    "google": {
        "RetryError": _TOO_LATE,
        "TransportError": _LOST,
        "DefaultCredentialsError": _NO_KEY,
    },
    # litellm gives every exception a status, a made-up one where there was none: the name knows
    # better. A reset comes out as InternalServerError with 500, hence the reach.
    "litellm": {
        "APIConnectionError": Known(Kind.NETWORK, wins=True),
        "Timeout": Known(Kind.TIMEOUT, wins=True),
        "ContextWindowExceededError": Known(Kind.CONTEXT_LENGTH, Reach.ANSWERED, wins=True),
        "ContentPolicyViolationError": Known(Kind.CONTENT_POLICY, Reach.ANSWERED, wins=True),
        "BudgetExceededError": Known(Kind.BILLING, Reach.NEVER_SENT, wins=True),
        "APIResponseValidationError": Known(Kind.BAD_ANSWER, wins=True),
    },
}

# Packages whose exceptions speak for a service: their codes, even their words, are evidence.
SDK_ROOTS = frozenset(("anthropic", "botocore", "google", "grpc", "litellm", "openai"))
# Packages that send requests: what they cannot decode is an answer.
CLIENT_ROOTS = SDK_ROOTS | {
    *("aiohttp", "httpcore", "httpcore2", "httpx", "httpx2", "requests", "urllib3", "websockets")
}

# By this platform's numbers; on Linux 32, 101, 104, 110, 111, 113.
BY_ERRNO: dict[int, Known] = {
    errno.EPIPE: _LOST,
    errno.ECONNRESET: _LOST,
    errno.ETIMEDOUT: _TOO_LATE,
    errno.ECONNREFUSED: _UNREACHED,
    errno.ENETUNREACH: _UNREACHED,
    errno.EHOSTUNREACH: _UNREACHED,
}


def find(cls: type) -> Known | None:
    """What is known about `cls`, from itself or the nearest of its bases."""
    for base in cls.__mro__:
        table = KNOWN.get(base.__module__.partition(".")[0])
        if table is not None and base.__name__ in table:
            return table[base.__name__]
    return None
