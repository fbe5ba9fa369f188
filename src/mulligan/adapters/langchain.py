"""Guarded copies of LangChain chat models: ChatOpenAI, ChatAnthropic and their kin.

Models are guarded by their HTTP client, not by middleware: a model middleware that repeats a stream
shows its tokens twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import SettingError
from .sdks import guarded_stainless

if TYPE_CHECKING:
    from .sender import Sender

__all__ = ("guarded_model", "is_chat_model")


def is_chat_model(model: object) -> bool:
    """Whether it is a chat model of LangChain."""
    names = {(each.__module__.partition(".")[0], each.__name__) for each in type(model).__mro__}
    return ("langchain_core", "BaseChatModel") in names


def guarded_model(model: Any, sender: Sender) -> Any:
    """A copy of a chat model that sends by `sender`; the model itself stays as it is.

    Raises:
        SettingError: It is not built on the SDK of openai or anthropic.
    """
    copy = model.model_copy()
    if hasattr(model, "root_client") and hasattr(model, "root_async_client"):  # ChatOpenAI
        for root, part in (("root_client", "client"), ("root_async_client", "async_client")):
            if getattr(model, root) is not None:
                view = guarded_stainless(getattr(model, root), sender)
                object.__setattr__(copy, root, view)
                object.__setattr__(copy, part, view.chat.completions)
    elif hasattr(model, "_client") and hasattr(model, "_async_client"):  # ChatAnthropic
        for name in ("_client", "_async_client"):
            # Cached properties. Their HTTP client is shared by all models: a view leaves it alone.
            copy.__dict__[name] = guarded_stainless(getattr(model, name), sender)
    else:
        raise SettingError(
            f"wrap cannot reach the HTTP client of {type(model).__name__}; give it a guarded one "
            f"if it takes http_client=, or call it with guard.call"
        )
    return copy
