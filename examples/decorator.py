"""The decorator: one line above a function that calls something unreliable."""

from __future__ import annotations

import mulligan
from mulligan.testing import Scripted, status_error

# Stands for an SDK: overloaded, then limited, then well.
weather = Scripted(
    status_error(529, "overloaded"),
    status_error(429, "slow down", headers={"retry-after": "1"}),
    "14 °C, light rain",
)


@mulligan.retry(effects="read", deadline="20s")
def forecast(city: str) -> str:
    print(f"  asking about {city}")
    return str(weather(city))


@mulligan.retry(effects="read")
def secret_forecast() -> str:
    print("  asking with a wrong key")
    raise status_error(401, "wrong key")


if __name__ == "__main__":
    print("a failure that passes:")
    print(" ", forecast("Oslo"))

    print("a failure that does not:")
    try:
        secret_forecast()
    except Exception as error:  # noqa: BLE001 -- the SDK's own class, whatever it is
        print(" ", error)
        print(" ", mulligan.story(error))
