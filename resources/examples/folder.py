"""An agent that answers questions about the texts in a folder, without a language model.

Serve it with `callboard agent serve folder.py:FolderAgent` in the folder, or put into the roster:

    notes:
      agent: ~/agents/folder.py:FolderAgent
      params: {folder: ~/notes}
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from callboard.agents import Agent, Chunk, Context, Event, Link, ToolCall, ToolReturn

SUFFIXES = {".md", ".txt", ".rst", ".csv", ".log"}
LARGEST = 2_000_000  # bytes of a file that is still read
COMMON = frozenset(
    {"a", "an", "and", "another", "are", "be", "by", "can", "did", "do", "does", "for", "from", "has", "have", "how"}
    | {"i", "in", "is", "it", "its", "me", "more", "of", "on", "or", "that", "the", "to", "was", "we", "what", "when"}
    | {"where", "which", "who", "why", "will", "with", "you", "your"}
)
WORD = re.compile(r"[^\W_]{2,}")


class FolderAgent(Agent):
    """Answers questions about the texts in a folder with the passages that hold the most of the question's words."""

    name = "folder"

    def __init__(self, folder: str = ".", passages: int = 3) -> None:
        self._folder = Path(folder).expanduser().resolve()
        self._passages = passages
        self.description = f"Finds passages in the texts under {self._folder.name} that answer a question."
        if not self._folder.is_dir():
            raise NotADirectoryError(f"{self._folder} is no folder")

    def run(self, request: str, context: Context) -> Iterator[Event]:
        """Find the best passages. A question of no words of its own, like "and more?", goes on with the last one."""
        words = set(_words(request)) or set(context.state.get("words", []))
        seen = context.state.get("seen", []) if words == set(context.state.get("words", [])) else []
        yield ToolCall("search", {"words": sorted(words)})
        found = [each for each in self._search(words) if f"{each[1]}:{each[2]}" not in seen]
        yield ToolReturn("search", f"{len(found)} passages")
        best = sorted(found, reverse=True)[: self._passages]
        context.state["words"] = sorted(words)
        context.state["seen"] = seen + [f"{path}:{line}" for _, path, line, _ in best]
        if not best:
            yield Chunk("Nothing more was found." if seen else "Nothing was found.")
            return
        for _, path, line, text in best:
            yield Chunk(f"{path}, line {line}:\n{text}\n\n")
        for path in dict.fromkeys(path for _, path, _, _ in best):
            yield Link((self._folder / path).as_uri(), path, "text/plain")

    def _search(self, words: set[str]) -> Iterator[tuple[float, str, int, str]]:
        """Passages with at least one of the words: score, file, line and text."""
        for path in sorted(self._folder.rglob("*")):
            if path.suffix.lower() not in SUFFIXES or not path.is_file() or path.stat().st_size > LARGEST:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            line = 1
            for passage in re.split(r"\n\s*\n", text):
                counts = Counter(_words(passage))
                hits = [word for word in words if counts[word]]
                if hits:
                    score = len(hits) + sum(counts[word] for word in hits) / (1 + sum(counts.values()))
                    start = line + len(passage) - len(passage.lstrip("\n"))
                    yield score, path.relative_to(self._folder).as_posix(), start, passage.strip()
                line += passage.count("\n") + 2


def _words(text: str) -> list[str]:
    return [word for word in map(str.lower, WORD.findall(text)) if word not in COMMON]
