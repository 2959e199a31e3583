"""Texts of Plotly's figures, which have tags, as matplotlib writes them."""

from __future__ import annotations

import re
from typing import Any

_TAG, _BREAK = re.compile(r"<[^<>]{0,200}>"), re.compile(r"<br\s*/?>")


def words(text: Any) -> str:
    """Returns a text of Plotly, which may be in an object, without its tags."""
    if isinstance(text, dict):
        text = text.get("text")
    return plain(_TAG.sub("", _BREAK.sub("\n", text)).strip()) if isinstance(text, str) else ""


def plain(text: Any) -> str:
    """Returns a text in which a dollar begins no formula."""
    return str(text).replace("$", r"\$")
