"""Two sandboxes do not share files of the workspace."""

from pathlib import Path


def leave(token: str) -> object:
    """Writes a file."""
    return Path("/workspace/left").write_text(token)


def find(token: str) -> bool:
    """Looks for it in every file there is."""
    return any(token in path.read_text(errors="replace") for path in Path("/workspace").rglob("*") if path.is_file())
