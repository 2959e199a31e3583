"""The text of HTML documents, as a browser would show it: a line per block, and tabs between the cells of a table."""

import re
from html.parser import HTMLParser
from typing import Any

from cellblock_kernel.outputs.limits import many

_BLOCKS = frozenset({"br", "div", "h1", "h2", "h3", "h4", "h5", "h6", "li", "p", "table", "tr", "ul", "ol", "pre"})
_CELLS = frozenset({"td", "th"})
_UNSEEN = frozenset({"script", "style", "head", "button", "select"})
# The pages of matplotlib's animations.
_MOVING, _FRAME = 'class="animation"', "  frames["


def of(document: str) -> str:
    """Returns the text of a document."""
    if _MOVING in document:
        return f"<animation of {many(document.count(_FRAME), 'picture')}>"
    reader = _Reader()
    reader.feed(document)
    reader.close()
    lines = "".join(reader.parts).split("\n")
    # Spaces of neighboring texts are one.
    shown = (re.sub(r" *\t *", "\t", re.sub(" {2,}", " ", line)).strip() for line in lines)
    return "\n".join(filter(None, shown))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._unseen += tag in _UNSEEN
        self.parts += "\n" if tag in _BLOCKS else "\t" if tag in _CELLS else ""
        if tag == "img" and not self._unseen:
            self.parts.append(f"<picture{f': {alt}' if (alt := dict(attrs).get('alt')) else ''}>")

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))
        self.parts += "\n" if tag in _BLOCKS else ""

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(re.sub(r"\s+", " ", data))
