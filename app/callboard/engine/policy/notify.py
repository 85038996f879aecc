"""Asks the person by a desktop notification, where no window is open."""

from typing import Final

from callboard.engine.policy.questions import CHOICES, Choice, Question
from callboard.system import notifications

MAX_SHOWN: Final = 600  # characters of the arguments: notifications are small
_LABELS: Final[dict[Choice, str]] = {"once": "Allow once", "always": "Always for this client and tool", "deny": "Deny"}


async def notify(question: Question) -> Choice | None:
    """The button that was pressed; None where no notification with buttons can be shown."""
    shown = question.arguments[:MAX_SHOWN]
    missing = len(question.arguments) - len(shown)
    rest = f" (and {missing} more characters)" if missing else ""
    summary = f"May {question.client} use {question.server}.{question.name}?"
    body = f"You are asked because this {question.kind} {question.reason}.\n{shown}{rest}"
    pressed = await notifications.ask(summary, body, {choice: _LABELS[choice] for choice in CHOICES})
    return next((choice for choice in CHOICES if choice == pressed), None)
