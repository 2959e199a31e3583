"""The directories of a sandbox, for rooms that cannot mount them at their usual paths."""

_moved: dict[str, str] = {}


def move(places: dict[str, str]) -> None:
    """Maps a directory that messages name to its real location."""
    _moved.clear()
    # The longest first: the location of `/tmp/data` is not below that of `/tmp`.
    _moved.update(sorted(places.items(), key=lambda place: -len(place[0])))


def real(path: str) -> str:
    """Returns the real path of one that a message names."""
    for name, place in _moved.items():
        if path == name or path.startswith(f"{name}/"):
            return place + path[len(name) :]
    return path
