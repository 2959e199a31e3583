"""Reading, changing and comparing the content of files."""

from __future__ import annotations

import base64
import errno
import mimetypes
import os
import re
from difflib import SequenceMatcher
from typing import Any

from record import find, lines_of, require, resolve, write_whole

MAX_TEXT = 1 << 20
MAX_BYTES = 10 << 20
MAX_COMPARED = 2_000_000
MAX_LINE = 2000


def read_text(path: str) -> str:
    """Returns a whole file, with the ends of lines that it has."""
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def media_type(path: str) -> str | None:
    """Returns the media type of a file by its name."""
    return mimetypes.guess_type(path)[0]


def about(cwd: str, path: str) -> dict[str, Any]:
    """Describes a file with its media type, and the path that no link is part of."""
    found = find(cwd, path)
    return {**found, "real": os.path.realpath(found["path"]), "media_type": media_type(found["path"])}


def exists(cwd: str, path: str) -> dict[str, Any]:
    """Reports whether a path leads to a file."""
    path = resolve(path, cwd)
    return {"path": path, "exists": os.path.isfile(path)}


def read_bytes(cwd: str, path: str) -> tuple[dict[str, Any], bytes]:
    """Returns a whole file."""
    path = resolve(path, cwd)
    require(os.path.isfile(path), "file", path)
    size = os.path.getsize(path)
    if size > MAX_BYTES:
        raise OSError(errno.EFBIG, f"{path} has {size} bytes; the limit is {MAX_BYTES}")
    with open(path, "rb") as file:
        return {"path": os.path.realpath(path)}, file.read()


def read(cwd: str, path: str, start_line: int = 1, end_line: int | None = None) -> Any:
    """Returns lines of a text, or a whole picture."""
    path = resolve(path, cwd)
    require(os.path.isfile(path), "file", path)
    kind = media_type(path) or "application/octet-stream"
    size = os.path.getsize(path)
    if kind.startswith("image/") and kind != "image/svg+xml":
        if size > MAX_BYTES:
            limit = f"pictures are read up to {MAX_BYTES}. Make a smaller copy of it first"
            raise OSError(errno.EFBIG, f"{path} has {size} bytes; {limit}")
        return {"media_type": kind}, read_bytes(cwd, path)[1]
    kept, length, total = [], 0, 0
    try:
        # With the ends of lines that it has: `replace` looks for the text that this returns.
        with open(path, encoding="utf-8", newline="") as file:
            for total, line in enumerate(file, 1):
                if total < start_line or (end_line is not None and total > end_line):
                    continue
                length += len(line)
                if length > MAX_TEXT:
                    hint = f"read fewer lines with start_line and end_line ({path} has {size} bytes)"
                    raise OSError(errno.EFBIG, f"the text is longer than {MAX_TEXT} characters; {hint}")
                kept.append(line)
    except UnicodeDecodeError:
        hint = "its text can be read with Python, for example with run_python"
        raise OSError(errno.EILSEQ, f"{path} is not text: {kind}, {size} bytes; {hint}") from None
    return {"path": path, "total_lines": total, "content": "".join(kept)}


def decode(text: str) -> bytes:
    """Decodes base64, which may have line breaks."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError as error:
        raise ValueError(f"the content is not valid base64: {error}") from None


def write(cwd: str, path: str, content: str | dict[str, str]) -> dict[str, Any]:
    """Writes a text, or bytes in base64."""
    path = resolve(path, cwd)
    written = content.encode() if isinstance(content, str) else decode(content["base64"])
    write_whole(path, written)
    return {"path": path, "size": len(written)}


def replace(cwd: str, path: str, replacements: list[dict[str, Any]]) -> dict[str, Any]:
    """Replaces pieces of a text: all of them, or none if one cannot be."""
    path = resolve(path, cwd)
    require(os.path.isfile(path), "file", path)
    text, count = read_text(path), 0
    for number, one in enumerate(replacements, 1):
        lines = lines_of(text)
        first, last = (one.get("start_line") or 1) - 1, one.get("end_line") or len(lines)
        region, rest = "".join(lines[first:last]), "".join(lines[max(first, last) :])
        found = region.count(one["target"])
        subject = f"replacement {number} of {len(replacements)}: the target text"
        if not found and not one.get("optional"):
            hint = f"{one['target'][:100]!r}; read the file and copy the text exactly"
            raise ValueError(f"{subject} was not found, and nothing was changed: {hint}")
        if found > 1 and not one.get("allow_multiple"):
            hint = "give more of it, start_line and end_line, or allow_multiple"
            raise ValueError(f"{subject} occurs {found} times, and nothing was changed: {hint}")
        text = "".join(lines[:first]) + region.replace(one["target"], one["replacement"]) + rest
        count += found
    content = text.encode()
    if count:
        write_whole(path, content)
    return {"path": path, "size": len(content), "count": count}


def parts(old: str, new: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the parts of two lines, each of which is the same in both or is changed."""
    a, b = (re.findall(r"\w+|[^\w\s]|\s+", line) for line in (old, new))
    left, right = [], []
    for tag, i, j, k, end in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if i != j:
            left.append({"text": "".join(a[i:j]), "changed": tag != "equal"})
        if k != end:
            right.append({"text": "".join(b[k:end]), "changed": tag != "equal"})
    return left, right


def compared(path: str, cwd: str) -> tuple[dict[str, Any], list[str]]:
    """Reads a text: its description and its lines."""
    path = resolve(path, cwd)
    require(os.path.isfile(path), "file", path)
    try:
        text = read_text(path)
    except UnicodeDecodeError:
        raise OSError(errno.EDOM, f"{path} is not text, so it cannot be compared") from None
    if len(text) > MAX_COMPARED:
        limit = f"the limit for a comparison is {MAX_COMPARED}"
        raise OSError(errno.EDOM, f"{path} has {len(text)} characters; {limit}")
    lines = [line.rstrip("\r\n") for line in lines_of(text)]
    return {"path": path, "name": os.path.basename(path), "notices": []}, lines


def line(kind: str, old: int | None, new: int | None, text: str) -> dict[str, Any]:
    """Describes a line with its numbers."""
    segments = [{"text": text, "changed": False}]
    return {"type": kind, "oldNumber": old, "newNumber": new, "content": text, "segments": segments}


def compare(cwd: str, original: str, revised: str, ignore_whitespace: bool = False) -> dict[str, Any]:
    """Lists the changed lines of a text, with three lines around them."""
    (old, a), (new, b) = compared(original, cwd), compared(revised, cwd)
    keys = [[re.sub(r"\s+", "", it) if ignore_whitespace else it for it in lines] for lines in (a, b)]
    matcher = SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    hunks, additions, deletions = [], 0, 0
    for group in matcher.get_grouped_opcodes(3):
        lines: list[dict[str, Any]] = []
        for tag, i, j, k, end in group:
            if tag == "equal":
                pairs = zip(range(i, j), range(k, end))
                lines += [{**line("context", x + 1, y + 1, a[x]), "revisedContent": b[y]} for x, y in pairs]
                continue
            removed = [line("removed", x + 1, None, a[x]) for x in range(i, j)]
            added = [line("added", None, y + 1, b[y]) for y in range(k, end)]
            for left, right in zip(removed, added):
                if max(len(left["content"]), len(right["content"])) <= MAX_LINE:
                    left["segments"], right["segments"] = parts(left["content"], right["content"])
            lines += removed + added
            additions, deletions = additions + len(added), deletions + len(removed)
        (_, i, _, k, _), (_, _, j, _, end) = group[0], group[-1]
        header = f"@@ -{i + (j > i)},{j - i} +{k + (end > k)},{end - k} @@"
        hunks.append({"header": header, "lines": lines})
    counts = {"additions": additions, "deletions": deletions}
    return {"original": old, "revised": new, **counts, "hunks": hunks}
