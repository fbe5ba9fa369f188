"""A tool of an agent that must not act twice.

The ticket system takes the ticket and loses its reply. It is unknown then whether the ticket
exists, so `verify=` looks before anything is sent again. The second ticket is lost on the way
there, and is sent again.
"""

from __future__ import annotations

import mulligan

tickets: dict[str, str] = {}
requests: list[str] = []


def find_ticket(key: str, title: str) -> object:  # noqa: ARG001 -- called as open_ticket is
    """The ticket, if the request that we lost sight of has made one."""
    return tickets.get(key, mulligan.NOT_APPLIED)


@mulligan.retry(verify=find_ticket)
def open_ticket(key: str, title: str) -> str:
    requests.append(key)
    if key == "night-1":
        tickets[key] = title
        raise TimeoutError("applied, but the reply was lost")
    if requests.count(key) == 1:
        raise ConnectionResetError("lost on the way there")
    tickets[key] = title
    return title


def tool(key: str, title: str) -> dict[str, object]:
    """What the model gets to read: the result, or the error and what to do about it."""
    try:
        return {"ticket": open_ticket(key, title), "is_error": False}
    except Exception as error:  # noqa: BLE001 -- a model reads every error
        story = mulligan.story(error)
        advice = story.because if story else "not known to pass: do not repeat it"
        return {"error": str(error), "advice": advice, "is_error": True}


if __name__ == "__main__":
    print(tool("night-1", "Disk is full"))
    print(tool("night-2", "Fan is loud"))
    print(f"requests sent: {requests}")
    print(f"tickets made:  {list(tickets)}")
