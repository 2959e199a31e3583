"""Finds the processes of a server that is measured."""

import pathlib


def family(root: int) -> list[int]:
    """Returns a process and all below it."""
    children: dict[int, list[int]] = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(folder.name))
    found, left = [], [root]
    while left:
        at = left.pop()
        found.append(at)
        left.extend(children.get(at, []))
    return found
