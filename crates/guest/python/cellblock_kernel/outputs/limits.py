"""The limits of one cell's outputs, as the host configures them."""

from __future__ import annotations

from typing import Any

# Characters of the longest mark in place of a text's middle.
_MARK = 48


class Limits:
    """Limits of one cell's outputs."""

    def __init__(self) -> None:
        self.outputs = 100
        self.output_bytes = 64 * 1024 * 1024
        self.text_chars = 100_000
        # Rows at each end of a table that is too large to send in full.
        self.rows_preview = 50
        # Maximum size of a cell's result as JSON, in bytes.
        self.result_bytes = 4 * 1024 * 1024

    def update(self, values: dict[str, Any]) -> None:
        """Takes the known limits of a `configure` message."""
        for name in vars(self):
            value = values.get(name)
            if isinstance(value, int) and value >= 0:
                setattr(self, name, value)


def many(count: int, noun: str, plural: str | None = None) -> str:
    """`1 row`, `2 rows`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def cut(text: str, chars: int) -> tuple[str, bool]:
    """Cuts text to its first `chars` characters."""
    return (text, False) if len(text) <= chars else (text[:chars], True)


def cut_middle(text: str, chars: int) -> str:
    """Cuts the middle out of a text: the ends of a traceback say most."""
    if len(text) <= chars:
        return text
    half = max(0, chars - _MARK) // 2
    mark = f"\n… {many(len(text) - 2 * half, 'character')} left out …\n"
    return (text[:half] + mark + (text[-half:] if half else ""))[: max(chars, len(mark))]
