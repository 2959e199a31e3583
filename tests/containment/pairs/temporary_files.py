"""Two sandboxes do not share temporary files."""

from pathlib import Path


def leave(token: str) -> object:
    """Makes a folder of that name."""
    return Path("/tmp", token).mkdir()


def find(token: str) -> bool:
    """Looks for it."""
    return Path("/tmp", token).exists()
