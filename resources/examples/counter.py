"""A counter: the smallest agent that needs to remember what was said. A plain async generator, no base class.

Serve it with `callboard agent serve counter.py:counter`, or put into the roster:

    counter:
      agent: ~/agents/counter.py:counter
      persist: true
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from callboard.agents import Context, Progress


async def counter(request: str, context: Context) -> AsyncIterator[Any]:
    """Counts up by the number in the request, or by one; "count to 5" does so step by step, "reset" begins anew."""
    digits = "".join(character for character in request if character.isdigit())
    number = int(digits) if digits else 1
    count: int = context.state.get("count", 0)
    if "reset" in request:
        context.state["count"] = 0
        yield "The count is 0."
        return
    if "to" in request.split():
        for step in range(count + 1, number + 1):
            yield Progress(f"{step}", step, number)
            await asyncio.sleep(0.05)
            context.state["count"] = step
        yield f"Counted to {number}."
        return
    context.state["count"] = count + number
    yield f"The count is {count + number}"
    yield f" after {context.conversation.turn} calls."
