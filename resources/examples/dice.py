"""Dice: an agent that has tools. Serve it with `callboard agent serve dice.py:Dice`, or put into the roster:

dice:
  agent: ~/agents/dice.py:Dice
"""

import random
from typing import Annotated

from callboard.agents import Agent, Context, tool

Sides = Annotated[int, "How many sides each die has, 2 to 1000"]


class Dice(Agent):
    """Rolls dice, and remembers what was rolled in a conversation."""

    name = "dice"
    instructions = "Roll dice with `roll`; `history` tells what was rolled so far in this conversation."

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    @tool(annotations={"readOnlyHint": True, "openWorldHint": False})
    def roll(self, sides: Sides = 6, count: int = 1, *, context: Context) -> dict[str, object]:
        """Roll one or more dice.

        Args:
            count: How many dice to roll, 1 to 100
        """
        if not 2 <= sides <= 1000 or not 1 <= count <= 100:
            raise ValueError("there are dice of 2 to 1000 sides, and at most 100 at once")
        rolled = [self._random.randint(1, sides) for _ in range(count)]
        context.state.setdefault("rolled", []).extend(rolled)
        return {"rolled": rolled, "total": sum(rolled)}

    @tool(annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False})
    def history(self, context: Context) -> list[int]:
        """All that was rolled in this conversation, the oldest first."""
        rolled: list[int] = context.state.get("rolled", [])
        return rolled
