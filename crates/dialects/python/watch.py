"""Changes in directories. The state of a watched directory is in a file until its next comparison."""

from __future__ import annotations

import json
import os
import stat
import time
from typing import Any

from record import below, describe, require_directory, write_whole

MAX_DEPTH = 64
#: Events of one answer. Those of one file stay together, so there may be a few more.
MAX_EVENTS = 1000
#: State of a directory: the inode, the content and the mode of each file.
State = dict[str, list[Any]]
#: Seconds between two looks.
PAUSE = 0.1


def look(path: str, recursive: bool) -> State:
    """Returns the state of all files of a directory, except those of the host's programs."""
    state: State = {}
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


def compare(before: State, now: State) -> tuple[list[tuple[str, str]], State]:
    """Lists the first changes as names and kinds, and returns the state with these changes alone."""
    gone = {found[0]: name for name, found in before.items() if name not in now}
    events: list[tuple[str, str]] = []
    state = dict(before)
    for name, found in now.items():
        if len(events) >= MAX_EVENTS:
            # A name that is gone may be one that is renamed below.
            return events, state
        state[name] = found
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
            del state[renamed]
        events.append((name, "create"))
        if renamed is None and found[1] and found[1][1]:
            events.append((name, "write"))
    for name in list(gone.values())[: max(0, MAX_EVENTS - len(events))]:
        events.append((name, "remove"))
        del state[name]
    return events, state


def start(cwd: str, file: str, path: str, recursive: bool) -> None:
    """Begins to watch a directory, until its file is removed."""
    require_directory(path)
    write_whole(file, json.dumps(look(path, recursive)).encode())


def changes(cwd: str, file: str, path: str, recursive: bool, seconds: float) -> list[dict[str, Any]]:
    """Returns changes since the last call, or the first ones within some seconds.

    Changes beyond the maximum are those of the next call.
    """
    with open(file, encoding="utf-8") as kept:
        before = json.load(kept)
    deadline = time.monotonic() + seconds
    while True:
        now = look(path, recursive)
        events, reported = compare(before, now)
        if events or time.monotonic() >= deadline or not os.path.exists(file):
            break
        time.sleep(PAUSE)
    if not events:
        return []
    write_whole(file, json.dumps(reported).encode())
    answer = []
    for name, kind in events:
        full = os.path.join(path, name)
        entry = describe(full) if kind not in ("rename", "remove") and os.path.lexists(full) else None
        answer.append({"name": name, "type": kind, "entry": entry})
    return answer
