"""Asks the person by a desktop notification, where no window is open."""

from typing import Final

from callboard.engine.policy.questions import CHOICES, Choice, Question, head_and_tail
from callboard.system import notifications

MAX_SHOWN: Final = 600  # characters of the arguments: notifications are small
MAX_NAME: Final = 120
_LABELS: Final[dict[Choice, str]] = {"once": "Allow once", "always": "Always for this client and tool", "deny": "Deny"}


async def notify(question: Question) -> Choice | None:
    """The button that was pressed; None where no notification with buttons can be shown."""
    summary, body, choices = wording(question)
    pressed = await notifications.ask(summary, body, {choice: _LABELS[choice] for choice in choices})
    return next((choice for choice in choices if choice == pressed), None)


def wording(question: Question) -> tuple[str, str, tuple[Choice, ...]]:
    """Summary, body and the answers of a notification. What it does not show whole cannot be allowed for good."""
    summary = f"May {question.client} use {question.server}.{head_and_tail(question.shown_name, MAX_NAME)}?"
    body = f"You are asked because this {question.kind} {question.reason}."
    if question.arguments_size <= MAX_SHOWN:
        return summary, f"{body}\n{question.arguments}", CHOICES
    warning = f"Not all is shown: the arguments have {question.arguments_size} characters."
    shown = head_and_tail(question.arguments, MAX_SHOWN)
    return summary, f"{body}\n{warning}\n{shown}", tuple(choice for choice in CHOICES if choice != "always")
