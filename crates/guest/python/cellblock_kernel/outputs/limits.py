"""The limits of one cell's outputs, as the host configures them."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(slots=True)
class Limits:
    """Limits of one cell's outputs."""

    outputs: int = 100
    output_bytes: int = 64 * 1024 * 1024
    text_chars: int = 100_000
    # Rows at each end of a table that is too large to send in full.
    rows_preview: int = 50
    # Maximum size of a cell's result as JSON, in bytes.
    result_bytes: int = 4 * 1024 * 1024

    def update(self, values: dict[str, Any]) -> None:
        """Takes the known limits of a `configure` message."""
        for field in fields(self):
            value = values.get(field.name)
            if isinstance(value, int) and value >= 0:
                setattr(self, field.name, value)


def cut(text: str, chars: int) -> tuple[str, bool]:
    """Cuts text to its first `chars` characters."""
    return (text, False) if len(text) <= chars else (text[:chars], True)


def cut_middle(text: str, chars: int) -> str:
    """Cuts the middle out of a text: the ends of a traceback say most."""
    if len(text) <= chars:
        return text
    mark = f"\n… {len(text) - chars} characters left out …\n"
    half = max(0, chars - len(mark)) // 2
    return (text[:half] + mark + (text[-half:] if half else ""))[: max(chars, len(mark))]
