"""Chooses the store and the target that a guard shares.

Order: the option, a test's replacement, the environment, the policy, one memory store for the whole
process.

Loaded with the first guard, so a `Target` is small until a call fails: whether it is calm, which
every call reads, and slots for the parts that are made then.
"""

from __future__ import annotations

import os

from ..calls.context import ambient_world
from ..errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.ports import Store
    from .targets import TargetState

__all__ = ("ALONE", "IN_TASK", "STORE", "Target", "store_for", "target_for", "target_in")

# The environment variable with the address of the shared store.
STORE = "MULLIGAN_STORE"


def store_for(option: Store | str | None = None, otherwise: str = "") -> Store:
    """The store that `option` means; the same one every time it is asked for in a process.

    Args:
        option: A store, its address, or None for ``MULLIGAN_STORE``, else the process's memory.
        otherwise: An address to use instead of that memory.

    Raises:
        SettingError: It is neither, or no store has such an address.
        MissingExtra: Its client is not installed.
        StoreError: It cannot be used safely.
    """
    if option is None:
        world = ambient_world.get()
        if world is not None and world.store is not None:
            return world.store
        option = os.environ.get(STORE) or otherwise or "memory:"
    if isinstance(option, str):
        from ..stores.open import open_store

        return open_store(option)
    if not hasattr(option, "scoped"):
        raise SettingError(
            f"store needs an address such as sqlite:PATH or redis://HOST, or a store; "
            f"got {option!r}"
        )
    return option


class Target:
    """What the callers of one target share in one store.

    Attributes:
        is_calm: Whether a call may be made without asking, and its success not reported.
        is_clear: Whether the same holds for answers that say that plenty is left (`fast_path`).
        has_default: Whether a guard that was given no settings is among the callers.
        state: Breaker, gate and tokens, once needed.
    """

    __slots__ = ("__weakref__", "has_default", "is_calm", "is_clear", "name", "scope", "state")

    def __init__(self, name: str, scope: str, *, is_calm: bool = False) -> None:
        self.name, self.scope, self.is_calm = name, scope, is_calm
        self.has_default = self.is_clear = False
        self.state: TargetState | None = None


# The target of calls without one; shared with no other caller.
ALONE = Target("", "", is_calm=True)

# The target of calls inside a task: never calm, because the task counts them.
IN_TASK = Target("", "", is_calm=False)


def target_for(
    name: str, scope: str, option: Store | str | None = None, otherwise: str = ""
) -> Target:
    """The target called `name`, for one account, in the store of these options, not of a test."""
    option = option or os.environ.get(STORE) or otherwise or "memory:"
    return target_in(store_for(option), name, scope)


def target_in(store: Store, name: str, scope: str) -> Target:
    """The target called `name` in `store`."""
    from .targets import targets_of

    return targets_of(store).get(name, scope)
