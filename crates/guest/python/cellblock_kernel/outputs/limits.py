"""The limits of one cell's outputs, as the host configures them."""

from typing import Any


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
