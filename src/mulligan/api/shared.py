"""The store that a guard shares its state through.

An option wins over everything; then what a test has put in its place, the environment, and at
last one memory for the whole process.
"""

from __future__ import annotations

import os

from ..drivers.ambient import ambient_world
from ..errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.ports import Store

__all__ = ("STORE", "store_for")

# The environment's word for where state is shared.
STORE = "MULLIGAN_STORE"


def store_for(option: Store | str | None = None) -> Store:
    """The store that `option` means; the same one every time it is asked for in a process.

    Args:
        option: A store, its address, or None for ``MULLIGAN_STORE``, else the process's memory.

    Raises:
        SettingError: It is neither, or no store has such an address.
        MissingExtra: Its client is not installed.
        StoreError: It cannot be used safely.
    """
    if option is None:
        world = ambient_world.get()
        if world is not None and world.store is not None:
            return world.store
        option = os.environ.get(STORE) or "memory:"
    if isinstance(option, str):
        from ..stores.url import open_store

        return open_store(option)
    if not hasattr(option, "scoped"):
        raise SettingError(
            f"store needs an address such as sqlite:PATH or redis://HOST, or a store; "
            f"got {option!r}"
        )
    return option
