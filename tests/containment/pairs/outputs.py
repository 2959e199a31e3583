"""Two sandboxes do not share output files."""

from pathlib import Path


def leave(token: str) -> object:
    """Writes a file."""
    return Path("/tmp/output/left").write_text(token)


def find(token: str) -> bool:
    """Looks for it."""
    return any(token in path.read_text() for path in Path("/tmp/output").iterdir())
