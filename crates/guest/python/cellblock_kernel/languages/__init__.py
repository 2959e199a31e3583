"""Cells in languages other than Python. A process of each language runs them and keeps their state."""

from typing import Any

from cellblock_kernel.cell import guard
from cellblock_kernel.languages.bash import Bash
from cellblock_kernel.languages.companion import Companion, Show
from cellblock_kernel.languages.javascript import JavaScript
from cellblock_kernel.languages.r import R

_ALL: dict[str, type[Companion]] = {kind.language: kind for kind in (Bash, JavaScript, R)}
_running: dict[str, Companion] = {}


def run(show: Show, message: dict[str, Any]) -> None:
    """Runs a cell. Raises a `Rejection` if the image lacks its language."""
    language, line = message["language"], message.get("line") or 1
    if language not in _running:
        kind = _ALL.get(language)
        if kind is None or not kind.is_there():
            there = ["python", *(other for other, known in _ALL.items() if known.is_there())]
            what = f"`{kind.program}` is not in this image" if kind else "it is unknown"
            raise guard.wrong_language(language, line, f"cannot run here: {what}; available: {', '.join(there)}")
        _running[language] = kind(show)
    name = message.get("name") or "<cell>"
    grace = message.get("grace_ms", 500) / 1000
    _running[language].run(
        message["code"], name, message.get("argv") or [], message.get("echo", True), bool(message.get("last")), grace
    )


def close() -> None:
    """Ends all processes."""
    for companion in _running.values():
        companion.close()
    _running.clear()
