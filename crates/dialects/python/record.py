"""Paths, descriptions and lists of files, in the form that every operation uses."""

from __future__ import annotations

import errno
import grp
import io
import os
import pwd
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

HOME = "/workspace"
#: Namespace of the attributes that clients set on files.
ATTRIBUTES = "user.e2b."
KINDS = {stat.S_IFDIR: "directory", stat.S_IFREG: "file", stat.S_IFLNK: "symlink"}


def resolve(path: str, cwd: str) -> str:
    """Returns the absolute path of one as seen from a directory."""
    path = HOME + path[1:] if path == "~" or path.startswith("~/") else path
    return os.path.normpath(os.path.join(cwd, path))


def require(found: bool, what: str, path: str) -> None:
    """Rejects a path that does not lead to what is needed."""
    if not found:
        raise FileNotFoundError(errno.ENOENT, f"{what} not found", path)


def require_directory(path: str) -> None:
    """Rejects a path that does not lead to a directory."""
    require(os.path.lexists(path), "directory", path)
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, "path is not a directory", path)


def lines_of(text: str) -> list[str]:
    """Returns the lines of a text with their ends: line feeds, carriage returns, or both."""
    # `splitlines` also splits at characters that no editor ends lines at, such as form feeds.
    return list(io.StringIO(text, newline=""))


def write_whole(path: str, content: bytes) -> None:
    """Writes a file in one step, so that no program reads half of it."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "path is a directory, not a file", path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    path = os.path.realpath(path)
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
    temporary = os.path.join(os.path.dirname(path), f".write-{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        # It is missing if it could not be made.
        with suppress(OSError):
            os.unlink(temporary)
        raise


@cache
def name_of(find: Callable[[int], Any], number: int) -> str:
    """Returns the name of a user or group."""
    try:
        return str(find(number)[0])
    except KeyError:
        return str(number)


def attributes(path: str) -> dict[str, str]:
    """Returns the attributes of a file that clients have set."""
    try:
        names = [name for name in os.listxattr(path) if name.startswith(ATTRIBUTES)]
        return {
            name.removeprefix(ATTRIBUTES): os.getxattr(path, name).decode(errors="replace") for name in names
        }
    except OSError:
        # A link that leads nowhere, or a file system without attributes.
        return {}


def describe(path: str) -> dict[str, Any]:
    """Describes the file that a path leads to.

    A link is described as the file that it leads to, with `target`; one that leads nowhere, as itself.
    """
    found, target = os.lstat(path), None
    if stat.S_ISLNK(found.st_mode):
        target = os.path.realpath(path)
        if os.path.exists(path):
            found = os.stat(path)
    return {
        "path": path,
        "kind": KINDS.get(stat.S_IFMT(found.st_mode), "other"),
        "target": target,
        "size": found.st_size,
        "mode": stat.S_IMODE(found.st_mode),
        "permissions": stat.filemode(found.st_mode),
        "owner": name_of(pwd.getpwuid, found.st_uid),
        "group": name_of(grp.getgrgid, found.st_gid),
        # Some file systems keep times that are centuries away.
        "modified": max(-(2**63), min(found.st_mtime_ns, 2**63 - 1)),
        "changed": max(-(2**63), min(found.st_ctime_ns, 2**63 - 1)),
        "writable": os.access(path, os.W_OK),
        "attributes": attributes(path),
    }


def scan(path: str) -> Iterator[os.DirEntry[str]]:
    """Yields the entries of a directory by their names."""
    with os.scandir(path) as entries:
        return iter(sorted(entries, key=lambda entry: entry.name))


def below(top: str, depth: int = sys.maxsize, hidden: bool = True) -> Iterator[os.DirEntry[str]]:
    """Yields all entries below a directory, in order, without following links."""
    levels = [scan(top)]
    while levels:
        entry = next(levels[-1], None)
        if entry is None:
            levels.pop()
        elif hidden or not entry.name.startswith("."):
            yield entry
            try:
                if len(levels) < depth and entry.is_dir(follow_symlinks=False):
                    levels.append(scan(entry.path))
            except OSError:
                continue


def find(cwd: str, path: str) -> dict[str, Any]:
    """Describes a file."""
    path = resolve(path, cwd)
    require(os.path.lexists(path), "path", path)
    return describe(path)


def entries(
    cwd: str, path: str = ".", depth: int = 1, skip: int = 0, limit: int = sys.maxsize
) -> dict[str, Any]:
    """Lists some of the entries below a directory, and counts all of them."""
    path = resolve(path, cwd)
    require_directory(path)
    found, total = [], 0
    for total, entry in enumerate(below(path, depth), 1):
        if skip < total <= skip + limit:
            try:
                found.append(describe(entry.path))
            except OSError:
                # It is gone, or its directory may be listed and not searched.
                continue
    return {"directory": describe(path), "entries": found, "total": total}
