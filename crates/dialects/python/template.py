"""Steps of a template's build that place and pack files.

Archives come from clients, so their members are data: nothing is written outside of the folder that they
are unpacked in, and only files, folders and links are.
"""

from __future__ import annotations

import errno
import glob
import gzip
import os
import shutil
import stat
import tarfile
import tempfile
from typing import Any

from record import HOME, require, resolve

MAX_MEMBERS = 100_000
#: Folders of programs' caches, which are left out of a template.
CACHES = {".cache", ".npm", "__pycache__"}


def refused(name: str, reason: str) -> ValueError:
    """Makes the error for a member that is not unpacked."""
    return ValueError(f"the archive is rejected: its member {name[:200]!r} {reason}")


def place_of(name: str, top: str) -> str:
    """Returns the path of a member, whose folders are made and are none of the archive's links."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise refused(name, "has a path that leads out of the archive")
    path = top
    for part in parts[:-1]:
        path = os.path.join(path, part)
        if os.path.islink(path):
            raise refused(name, "is below a link")
        os.makedirs(path, exist_ok=True)
    return os.path.join(path, parts[-1]) if parts else top


def unpack(file: str, top: str, max_bytes: int) -> None:
    """Unpacks an archive in an empty folder."""
    total = 0
    try:
        # In one pass: an archive that is not one fails before anything of it is used.
        with tarfile.open(file, "r|*") as archive:
            for number, member in enumerate(archive):
                if number >= MAX_MEMBERS:
                    raise ValueError(f"the archive is rejected: it has more than {MAX_MEMBERS} members")
                total += max(member.size, 0)
                if total > max_bytes:
                    raise ValueError(f"the archive is rejected: its files have more than {max_bytes} bytes")
                path = place_of(member.name, top)
                if member.isdir():
                    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path)):
                        raise refused(member.name, "replaces another one")
                    os.makedirs(path, exist_ok=True)
                    continue
                if os.path.lexists(path):
                    raise refused(member.name, "is there twice")
                if member.issym():
                    os.symlink(member.linkname, path)
                elif member.islnk():
                    source = place_of(member.linkname, top)
                    if os.path.islink(source) or not os.path.isfile(source):
                        raise refused(member.name, "is a hard link to something else than one of its files")
                    shutil.copy2(source, path)
                elif member.isreg() and not member.issparse():
                    content = archive.extractfile(member)
                    require(content is not None, "member", member.name)
                    assert content is not None
                    with open(path, "xb") as target:
                        shutil.copyfileobj(content, target)
                    os.chmod(path, (member.mode & 0o777) | stat.S_IRUSR | stat.S_IWUSR)
                else:
                    raise refused(member.name, "is neither a file, a folder nor a link")
    except (tarfile.TarError, EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"the archive cannot be read: {error}") from None


def place(source: str, target: str) -> None:
    """Copies a file, a link, or what is in a folder."""
    if os.path.isdir(source) and not os.path.islink(source):
        # Not `copytree`, which fails at a link that is there already, and writes through one to a file.
        is_new = not os.path.isdir(target)
        os.makedirs(target, exist_ok=True)
        for name in sorted(os.listdir(source)):
            place(os.path.join(source, name), os.path.join(target, name))
        if is_new:
            # Last: it may forbid what is done above.
            shutil.copymode(source, target)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target):
        os.unlink(target)
    shutil.copy2(source, target, follow_symlinks=False)


def permit_below(path: str, mode: int) -> None:
    """Sets the mode of files and folders, without following links."""
    for folder, _, names in os.walk(path):
        for name in names:
            if not os.path.islink(os.path.join(folder, name)):
                os.chmod(os.path.join(folder, name), mode)
        # Who may write a file may also enter its folder.
        os.chmod(folder, mode | ((mode & 0o444) >> 2))
    if not os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, mode)


def copy(
    cwd: str, file: str, source: str, destination: str, max_bytes: int, mode: int | None = None
) -> dict[str, Any]:
    """Copies the files of an archive that match a pattern, as `COPY` of a Dockerfile does."""
    is_folder = destination.endswith("/") or destination in (".", "..")
    target = resolve(destination, cwd)
    with tempfile.TemporaryDirectory(prefix=".cellblock-copy-", dir="/tmp") as top:
        unpack(file, top, max_bytes)
        os.unlink(file)
        pattern = os.path.normpath(source)
        if pattern.startswith(("/", "..")):
            raise ValueError(f"the source {source[:200]!r} leads out of the archive; use a relative path")
        found = [pattern] if os.path.lexists(os.path.join(top, pattern)) else []
        found = found or sorted(glob.glob(pattern, root_dir=top, recursive=True))
        require(bool(found), "source of the copy", source)
        for name in found:
            path = os.path.join(top, name)
            one = target
            is_file = os.path.islink(path) or not os.path.isdir(path)
            if is_file and (is_folder or len(found) > 1 or os.path.isdir(target)):
                one = os.path.join(target, os.path.basename(name))
            if mode is not None:
                permit_below(path, mode)
            place(path, one)
    return {"path": target, "count": len(found)}


def enter(cwd: str, path: str) -> dict[str, Any]:
    """Makes a working directory."""
    os.makedirs(path, exist_ok=True)
    return {"path": path}


def keep(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leaves out caches, files of the host, and what no archive can have."""
    name = os.path.basename(member.name)
    if name in CACHES or name.startswith(".cellblock"):
        return None
    known = member.isreg() or member.isdir() or member.issym() or member.islnk()
    member.uname = member.gname = ""
    return member if known else None


def pack(cwd: str, file: str, max_bytes: int) -> dict[str, Any]:
    """Packs the home into an archive."""
    try:
        # Level 1: a build waits for the archive, which is read once for each sandbox.
        with tarfile.open(file, "w:gz", compresslevel=1) as archive:
            for name in sorted(os.listdir(HOME)):
                archive.add(os.path.join(HOME, name), arcname=name, filter=keep)
                size = os.path.getsize(file)
                if size > max_bytes:
                    reason = f"the files in the home have more than {max_bytes} bytes as an archive"
                    raise OSError(errno.EFBIG, f"{reason}, which is the limit of a template; remove some")
    except BaseException:
        if os.path.exists(file):
            os.unlink(file)
        raise
    return {"bytes": os.path.getsize(file)}
