"""A LangGraph node with a retry policy around a guarded chat model: three requests, not nine.

Runs against the fault server, without an account: python examples/wrap_langgraph.py
"""

from __future__ import annotations

from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import RetryPolicy

import mulligan
from mulligan.testing import FaultServer, virtual_time


def main() -> None:
    with FaultServer("503") as server, virtual_time():
        guard = mulligan.Guard("model", attempts=3)
        settings: Any = {"base_url": f"{server.url}/v1", "api_key": "k"}
        model = guard.wrap(ChatOpenAI(model="m", **settings))

        def ask(state: MessagesState) -> Any:
            return {"messages": [model.invoke(state["messages"])]}

        graph: Any = StateGraph(MessagesState)
        graph.add_node("ask", ask, retry_policy=RetryPolicy(retry_on=mulligan.is_unjudged))
        graph.add_edge(START, "ask")
        graph.add_edge("ask", END)
        try:
            graph.compile().invoke({"messages": [("user", "hi")]})
        except Exception as error:  # noqa: BLE001 -- whatever class the framework makes of it
            story = mulligan.story(error)
            print(f"{type(error).__name__}: {story.note if story else error}")
        print(f"{server.totals.requests} requests")


if __name__ == "__main__":
    main()
