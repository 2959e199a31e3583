"""Where the directories of a sandbox are, for rooms that cannot mount them at their usual paths."""

_moved: dict[str, str] = {}


def move(places: dict[str, str]) -> None:
    """Says that what messages call by one directory lies below another."""
    _moved.clear()
    # The longest first: `/tmp/data` is not below where `/tmp` is.
    _moved.update(sorted(places.items(), key=lambda place: -len(place[0])))


def real(path: str) -> str:
    """The path at which this process finds what a message names."""
    for name, place in _moved.items():
        if path == name or path.startswith(f"{name}/"):
            return place + path[len(name) :]
    return path
