"""Changes in directories. The state of a watched directory is in a file until its next comparison."""

from __future__ import annotations

import json
import os
import stat
import time
from typing import Any

from record import below, describe, require_directory, write_whole

MAX_DEPTH = 64
MAX_EVENTS = 1000
#: Seconds between two looks.
PAUSE = 0.1


def look(path: str, recursive: bool) -> dict[str, list[Any]]:
    """Returns the state of all files of a directory, except those of the host's programs."""
    state: dict[str, list[Any]] = {}
    try:
        for entry in below(path, MAX_DEPTH if recursive else 1):
            try:
                found = os.lstat(entry.path)
            except OSError:
                continue
            if "/.cellblock" not in entry.path:
                written = [] if stat.S_ISDIR(found.st_mode) else [found.st_mtime_ns, found.st_size]
                state[os.path.relpath(entry.path, path)] = [found.st_ino, written, found.st_mode]
    except OSError:
        pass
    return state


def compare(before: dict[str, list[Any]], now: dict[str, list[Any]]) -> list[tuple[str, str]]:
    """Lists changes as names and kinds."""
    gone = {found[0]: name for name, found in before.items() if name not in now}
    events = []
    for name, found in now.items():
        if name in before:
            known = before[name]
            if known[:2] != found[:2]:
                events.append((name, "write"))
            if known[2] != found[2]:
                events.append((name, "chmod"))
            continue
        renamed = gone.pop(found[0], None)
        if renamed is not None:
            events.append((renamed, "rename"))
        events.append((name, "create"))
        if renamed is None and found[1] and found[1][1]:
            events.append((name, "write"))
    return events + [(name, "remove") for name in gone.values()]


def start(cwd: str, file: str, path: str, recursive: bool) -> None:
    """Begins to watch a directory, until its file is removed."""
    require_directory(path)
    write_whole(file, json.dumps(look(path, recursive)).encode())


def changes(cwd: str, file: str, path: str, recursive: bool, seconds: float) -> list[dict[str, Any]]:
    """Returns the changes since the last call, or the first ones within some seconds."""
    with open(file, encoding="utf-8") as kept:
        before = json.load(kept)
    deadline = time.monotonic() + seconds
    while True:
        now = look(path, recursive)
        events = compare(before, now)
        if events or time.monotonic() >= deadline or not os.path.exists(file):
            break
        time.sleep(PAUSE)
    if not events:
        return []
    write_whole(file, json.dumps(now).encode())
    answer = []
    for name, kind in events[:MAX_EVENTS]:
        full = os.path.join(path, name)
        entry = describe(full) if kind not in ("rename", "remove") and os.path.lexists(full) else None
        answer.append({"name": name, "type": kind, "entry": entry})
    return answer
