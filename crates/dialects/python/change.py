"""Making, moving, copying, packing and removing files, and changing their permissions."""

from __future__ import annotations

import errno
import os
import shutil
import zipfile
from contextlib import suppress
from typing import Any

from record import ATTRIBUTES, below, describe, require, resolve


def permit(
    cwd: str, path: str, mode: int | None = None, owner: str | None = None, group: str | None = None
) -> dict[str, Any]:
    """Changes the mode, owner and group of a file."""
    path = resolve(path, cwd)
    if mode is not None:
        os.chmod(path, mode)
    found = describe(path)
    owner, group = owner or found["owner"], group or found["group"]
    if (owner, group) != (found["owner"], found["group"]):
        shutil.chown(path, owner, group)
    return found


def label(cwd: str, path: str, attributes: dict[str, str]) -> dict[str, Any]:
    """Sets attributes of a new file."""
    path = resolve(path, cwd)
    try:
        for name, value in attributes.items():
            os.setxattr(path, ATTRIBUTES + name, value.encode())
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        reason = "the file was written without metadata, which its file system cannot keep"
        raise OSError(errno.ENOTSUP, f"{reason}; leave `metadata` out", path) from None
    return describe(path)


def make(cwd: str, path: str, exist_ok: bool = True, **permissions: Any) -> dict[str, Any]:
    """Makes a directory and those above it."""
    path = resolve(path, cwd)
    if not exist_ok and os.path.isdir(path):
        raise FileExistsError(errno.EEXIST, "directory already exists", path)
    os.makedirs(path, exist_ok=True)
    return permit(cwd, path, **permissions)


def move(cwd: str, source: str, destination: str, replace: bool = False) -> dict[str, Any]:
    """Renames a file or directory. One that replaces another also makes directories above it."""
    source, destination = resolve(source, cwd), resolve(destination, cwd)
    require(os.path.lexists(source), "source", source)
    if replace:
        os.makedirs(os.path.dirname(destination), exist_ok=True)
    elif not os.path.isdir(os.path.dirname(destination)):
        raise OSError(errno.EINVAL, "the directory of the destination does not exist", destination)
    elif os.path.lexists(destination):
        raise FileExistsError(errno.EEXIST, "the destination exists", destination)
    try:
        os.rename(source, destination)
    except OSError as error:
        if error.errno != errno.EXDEV or os.path.isdir(destination):
            raise
        shutil.move(source, destination)
    return {**describe(destination), "source": source}


def link(cwd: str, path: str, target: str) -> dict[str, Any]:
    """Makes a link, where nothing is yet."""
    path = resolve(path, cwd)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(target, path)
    return {"path": path}


def copy(cwd: str, source: str, destination: str) -> dict[str, Any]:
    """Copies the content of a file."""
    source, destination = resolve(source, cwd), resolve(destination, cwd)
    require(os.path.isfile(source), "file", source)
    os.makedirs(os.path.dirname(destination), exist_ok=True)
    shutil.copyfile(source, destination)
    return describe(destination)


def remove(cwd: str, path: str, kind: str | None = None, missing_ok: bool = False) -> dict[str, Any]:
    """Removes a file, a link, or a directory with everything below it."""
    path = resolve(path, cwd)
    is_directory = os.path.isdir(path) and not os.path.islink(path)
    found = "directory" if is_directory else "file"
    if os.path.lexists(path):
        if kind not in (None, found):
            raise OSError(errno.EISDIR if is_directory else errno.ENOTDIR, f"path is not a {kind}", path)
        (shutil.rmtree if is_directory else os.unlink)(path)
    else:
        require(missing_ok, "path", path)
    return {"path": path, "type": found}


def archive(cwd: str, paths: list[str], packed: str) -> dict[str, Any]:
    """Packs files and directories into a new ZIP file, without links."""
    paths = [resolve(path, cwd) for path in paths]
    if not paths:
        raise ValueError("`paths` is empty; name a file or directory")
    for path in paths:
        require(os.path.exists(path), "path", path)
    try:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as file:
            for path in paths:
                inside = [entry.path for entry in below(path)] if os.path.isdir(path) else [path]
                for one in inside:
                    if not os.path.isfile(one) or os.path.islink(one):
                        continue
                    # The archive never ends if it contains itself.
                    if not os.path.samefile(one, packed):
                        file.write(one, os.path.relpath(one, os.path.dirname(path)))
    except BaseException:
        # It is missing if it could not be made.
        with suppress(OSError):
            os.unlink(packed)
        raise
    name = os.path.basename(paths[0]) if len(paths) == 1 else "download"
    return {"name": name or "archive"}


def compose(cwd: str, paths: list[str], destination: str) -> dict[str, Any]:
    """Makes one file of the contents of several, which it removes."""
    os.makedirs(os.path.dirname(destination), exist_ok=True)
    part = destination + ".cellblock-part"
    with open(part, "wb") as whole:
        for path in paths:
            with open(path, "rb") as file:
                shutil.copyfileobj(file, whole)
    os.replace(part, destination)
    for path in paths:
        if os.path.exists(path) and not os.path.samefile(path, destination):
            os.unlink(path)
    return describe(destination)
