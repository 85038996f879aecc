"""Configurations that a person pastes into a client, made from the table in resources/clients.yaml."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from callboard.api.schema import ClientView, SnippetView
from callboard.core.errors import CallboardError
from callboard.system.resources import resource


@dataclass(frozen=True)
class Template:
    """One client of the table; see there what the fields mean."""

    name: str
    file: str
    format: str
    note: str
    note_with_token: str
    shape: dict[str, Any] | None = None
    ask: str = "$CALLBOARD_TOKEN"
    ask_shape: dict[str, Any] | None = None
    text: str = ""
    text_with_token: str = ""
    command: str = ""


class Clients:
    """The table of clients. Immutable; made once by :func:`load_clients`."""

    def __init__(self, templates: dict[str, Template]) -> None:
        self._templates = templates

    @property
    def ids(self) -> tuple[str, ...]:
        """Every client's id, in the table's order."""
        return tuple(self._templates)

    def views(self) -> list[ClientView]:
        """What a person can choose from."""
        return [
            ClientView(id=client, name=item.name, file=item.file, format=item.format)
            for client, item in self._templates.items()
        ]

    def snippet(self, client: str, url: str, key: str, token: str | None = None) -> SnippetView:
        """The configuration of ``client`` for the endpoint ``url`` under the entry name ``key``.

        With ``token`` it stands there in clear; without, the client asks the person or reads its environment. ``url``
        is a literal address, ``key`` letters, digits, - and _. Raises ``client-unknown``.
        """
        item = self._templates.get(client)
        if item is None:
            raise CallboardError("client-unknown", f'There is no client "{client}"; there are {", ".join(self.ids)}.')
        words = {"<url>": url, "<key>": key, "<token>": token or item.ask}
        text = _text(item, words, with_token=token is not None)
        # a shell would expand ${…} of another program's making
        words["<command>"] = _filled(item.command, {**words, "<token>": token or "$CALLBOARD_TOKEN"})
        note = _filled(item.note if token is None else item.note_with_token, words)
        return SnippetView(client=client, text=text, file=item.file, format=item.format, note=note)


def load_clients(table: Path | None = None) -> Clients:
    """Read the table (a few milliseconds)."""
    text = (table or resource("clients.yaml")).read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return Clients({client: Template(**fields) for client, fields in yaml.load(text, Loader=loader).items()})


def _text(item: Template, words: dict[str, str], *, with_token: bool) -> str:
    if item.shape is None:
        return str(_filled(item.text_with_token if with_token else item.text, words))
    shape = item.shape if with_token else {**item.shape, **(item.ask_shape or {})}
    return json.dumps(_filled(shape, words), indent=2, ensure_ascii=False) + "\n"


def _filled(value: Any, words: dict[str, str]) -> Any:
    if isinstance(value, str):
        for word, text in words.items():
            value = value.replace(word, text)
        return value
    if isinstance(value, dict):
        return {_filled(key, words): _filled(item, words) for key, item in value.items()}
    return [_filled(item, words) for item in value] if isinstance(value, list) else value
