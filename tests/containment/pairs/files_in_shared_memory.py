"""Two sandboxes do not share the folder of shared memory."""

from pathlib import Path


def leave(token: str) -> object:
    """Writes a file."""
    return Path("/dev/shm/left").write_text(token)


def find(token: str) -> bool:
    """Looks for it."""
    return any(token in path.read_text(errors="replace") for path in Path("/dev/shm").iterdir())
