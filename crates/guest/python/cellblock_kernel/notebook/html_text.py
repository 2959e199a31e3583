"""The text of HTML documents, as a browser would show it: a line per block, and tabs between the cells of a table."""

from html.parser import HTMLParser
from typing import Any

_BLOCKS = frozenset({"br", "div", "h1", "h2", "h3", "h4", "h5", "h6", "li", "p", "table", "tr", "ul", "ol", "pre"})
_CELLS = frozenset({"td", "th"})
_UNSEEN = frozenset({"script", "style", "head"})


def of(document: str) -> str:
    """Returns the text of a document."""
    reader = _Reader()
    reader.feed(document)
    reader.close()
    lines = "".join(reader.parts).split("\n")
    return "\n".join(line.strip() for line in lines if line.strip())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._unseen += tag in _UNSEEN
        self.parts += "\n" if tag in _BLOCKS else "\t" if tag in _CELLS else ""

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))
        self.parts += "\n" if tag in _BLOCKS else ""

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(" ".join(data.split()) if data.strip() else " " * bool(data))
