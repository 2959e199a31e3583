"""Looks after files of a sandbox, for one request.

It runs inside the sandbox, beside cells, and may do what any code there may. It reads a JSON object from stdin: `op`, `cwd`, and the arguments of
the operation. It writes one line of JSON, `{"ok": …}` or `{"error": {"status", "detail"}}`; the bytes of a picture follow it.
"""

import base64
import difflib
import fnmatch
import heapq
import json
import mimetypes
import os
import re
import shutil
import sys
import tempfile
import zipfile

HOME = "/workspace"
MAX_ENTRIES = 5000
MAX_TEXT = 1 << 20
MAX_PICTURE = 10 << 20
MAX_SEARCHED = 8 << 20
MAX_LINE = 2000
MAX_COMPARED = 2_000_000


class Refused(Exception):
    def __init__(self, status, detail):
        super().__init__(detail)
        self.status = status
        self.detail = detail


def resolve(path, cwd):
    path = HOME + path[1:] if path == "~" or path.startswith("~/") else path
    return os.path.normpath(os.path.join(cwd, path))


def needs(found, what, path):
    if not found:
        raise Refused(404, f"{what} not found: {path}")


def read_text(path):
    with open(path, "rb") as file:
        return file.read().decode()


def files_below(top, hidden=True):
    """Yields files and folders below a folder, in order, without following links."""
    for folder, folders, files in os.walk(top):
        if not hidden:
            folders[:] = [name for name in folders if not name.startswith(".")]
            files = [name for name in files if not name.startswith(".")]
        folders.sort()
        for name in sorted(folders + files):
            yield os.path.join(folder, name), "directory" if name in folders else "file"


def list_files(cwd, directory="."):
    target = resolve(directory, cwd)
    needs(os.path.isdir(target), "directory", target)
    names = sorted(os.listdir(target))
    entries = []
    for name in names[:MAX_ENTRIES]:
        full = os.path.join(target, name)
        try:
            info = os.stat(full)
        except OSError:
            continue
        kind = "directory" if os.path.isdir(full) else "file"
        entries.append({"name": name, "type": kind, "size": info.st_size, "modified": info.st_mtime, "writable": os.access(full, os.W_OK)})
    answer = {"dir": target, "writable": os.access(target, os.W_OK), "entries": entries}
    if len(names) > MAX_ENTRIES:
        answer["omitted"] = len(names) - MAX_ENTRIES
    return answer


def set_cwd(cwd, path):
    target = resolve(path, cwd)
    needs(os.path.isdir(target), "directory", target)
    return {"cwd": target}


def read(cwd, path, start_line=None, end_line=None):
    target = resolve(path, cwd)
    needs(os.path.isfile(target), "file", target)
    media_type = mimetypes.guess_type(target)[0] or "application/octet-stream"
    size = os.path.getsize(target)
    if media_type.startswith("image/") and media_type != "image/svg+xml":
        if size > MAX_PICTURE:
            raise Refused(413, f"{target} has {size} bytes; pictures are read up to {MAX_PICTURE}. Make a smaller copy of it first")
        with open(target, "rb") as file:
            return {"media_type": media_type}, file.read()
    kept, length, total = [], 0, 0
    try:
        with open(target, encoding="utf-8") as file:
            for total, line in enumerate(file, 1):
                if total < (start_line or 1) or (end_line is not None and total > end_line):
                    continue
                length += len(line)
                if length > MAX_TEXT:
                    raise Refused(413, f"the text is longer than {MAX_TEXT} characters; read fewer lines with start_line and end_line ({target} has {size} bytes)")
                kept.append(line)
    except UnicodeDecodeError:
        hint = "its text can be read with Python, for example with run_python"
        raise Refused(415, f"{target} is not text: {media_type}, {size} bytes; {hint}") from None
    return {"path": target, "total_lines": total, "content": "".join(kept)}


def display(cwd, path):
    target = resolve(path, cwd)
    return {"path": target, "exists": os.path.isfile(target)}


def about(cwd, path):
    target = resolve(path, cwd)
    needs(os.path.exists(target), "path", target)
    info = os.stat(target)
    return {
        "path": os.path.realpath(target),
        "type": "directory" if os.path.isdir(target) else "file",
        "size": info.st_size,
        "modified": info.st_mtime,
        "writable": os.access(target, os.W_OK),
        "media_type": mimetypes.guess_type(target)[0],
    }


def content(cwd, path):
    """The bytes of a file, whatever it is."""
    target = resolve(path, cwd)
    needs(os.path.isfile(target), "file", target)
    if os.path.getsize(target) > MAX_PICTURE:
        raise Refused(413, f"{target} has {os.path.getsize(target)} bytes; the limit is {MAX_PICTURE}")
    with open(target, "rb") as file:
        return about(cwd, path), file.read()


def replace_whole(target, content):
    """Writes in one step, so that nobody reads half of it."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    target = os.path.realpath(target)
    mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o644
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".write-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def write(cwd, path, content):
    target = resolve(path, cwd)
    content = content.encode() if isinstance(content, str) else base64.b64decode(content["base64"])
    replace_whole(target, content)
    return {"path": target, "size": len(content)}


def replace(cwd, path, replacements):
    target = resolve(path, cwd)
    needs(os.path.isfile(target), "file", target)
    text = read_text(target)
    for number, chunk in enumerate(replacements, 1):
        lines = text.splitlines(keepends=True)
        first = (chunk.get("start_line") or 1) - 1
        last = chunk.get("end_line") or len(lines)
        before, region, after = "".join(lines[:first]), "".join(lines[first:last]), "".join(lines[max(first, last) :])
        count = region.count(chunk["target"])
        where = f"replacement {number} of {len(replacements)}: the target text"
        if count == 0:
            raise Refused(400, f"{where} was not found, and nothing was changed: {chunk['target'][:100]!r}; read the file and copy the text exactly")
        if count > 1 and not chunk.get("allow_multiple"):
            raise Refused(400, f"{where} occurs {count} times, and nothing was changed: give more of it, start_line and end_line, or allow_multiple")
        text = before + region.replace(chunk["target"], chunk["replacement"]) + after
    content = text.encode()
    replace_whole(target, content)
    return {"path": target, "size": len(content)}


def searchable_lines(path):
    """The lines of a text file; none of one that is binary or large."""
    try:
        if os.path.getsize(path) > MAX_SEARCHED or not os.path.isfile(path):
            return []
        return read_text(path).splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def grep(cwd, query, path=".", regex=True, case_insensitive=False, include=(), match_per_line=True, max_results=50):
    target = resolve(path, cwd)
    needs(os.path.exists(target), "search path", target)
    try:
        pattern = re.compile(query if regex else re.escape(query), re.IGNORECASE if case_insensitive else 0)
    except re.error as error:
        raise Refused(400, f"invalid regular expression: {error}; set regex to false to search for the text itself") from None
    matches, truncated = [], False
    paths = [target] if os.path.isfile(target) else (full for full, kind in files_below(target) if kind == "file")
    for full in paths:
        if include and not any(fnmatch.fnmatch(os.path.basename(full), glob) for glob in include):
            continue
        for number, line in enumerate(searchable_lines(full), 1):
            if not pattern.search(line):
                continue
            if len(matches) >= max_results:
                truncated = True
                break
            if not match_per_line:
                matches.append({"file": full})
                break
            matches.append({"file": full, "line": number, "content": line[:MAX_LINE]})
        if truncated:
            break
    return {"query": query, "path": target, "matches": matches, "truncated": truncated}


def glob(cwd, pattern, path=".", exclude=(), type="any", max_results=50):
    target = resolve(path, cwd)
    needs(os.path.isdir(target), "search directory", target)
    matches, truncated = [], False
    for full, kind in files_below(target):
        name, relative = os.path.basename(full), os.path.relpath(full, target)
        hits = lambda one: fnmatch.fnmatch(name, one) or fnmatch.fnmatch(relative, one)
        if type not in ("any", kind) or not hits(pattern) or any(map(hits, exclude)):
            continue
        if len(matches) >= max_results:
            truncated = True
            break
        try:
            info = os.stat(full)
        except OSError:
            continue
        matches.append({"path": relative, "type": kind, "size": info.st_size, "modified": info.st_mtime})
    return {"pattern": pattern, "path": target, "matches": matches, "truncated": truncated}


def rank(query, name):
    return 0 if name == query else 1 if name.startswith(query) else 2


def search(cwd, query="", path=".", limit=20, type="any", show_hidden=False):
    target = resolve(path, cwd)
    needs(os.path.isdir(target), "search directory", target)
    wanted = query.strip().lower()

    def candidates():
        for full, kind in files_below(target, show_hidden):
            name = os.path.basename(full)
            if type not in ("any", kind) or wanted not in name.lower():
                continue
            try:
                info = os.stat(full)
            except OSError:
                continue
            entry = {"path": full, "name": name, "type": kind, "size": info.st_size, "modified": info.st_mtime}
            yield rank(wanted, name.lower()), len(name), full, entry

    return {"results": [found[3] for found in heapq.nsmallest(limit, candidates(), key=lambda found: found[:3])]}


def mkdir(cwd, path):
    target = resolve(path, cwd)
    os.makedirs(target, exist_ok=True)
    return {"path": target}


def move(cwd, source, destination):
    source, destination = resolve(source, cwd), resolve(destination, cwd)
    needs(os.path.lexists(source), "source", source)
    if not os.path.isdir(os.path.dirname(destination)):
        raise Refused(400, f"the directory of the destination does not exist: {destination}")
    if os.path.lexists(destination):
        raise Refused(409, f"the destination exists: {destination}")
    shutil.move(source, destination)
    return {"source": source, "destination": destination}


def copy(cwd, source, destination):
    source, destination = resolve(source, cwd), resolve(destination, cwd)
    needs(os.path.isfile(source), "file", source)
    os.makedirs(os.path.dirname(destination), exist_ok=True)
    shutil.copyfile(source, destination)
    return about("/", destination)


def delete(cwd, path):
    target = resolve(path, cwd)
    needs(os.path.lexists(target), "path", target)
    is_folder = os.path.isdir(target) and not os.path.islink(target)
    (shutil.rmtree if is_folder else os.unlink)(target)
    return {"path": target, "type": "directory" if is_folder else "file"}


def archive(cwd, paths):
    targets = [resolve(path, cwd) for path in paths]
    if not targets:
        raise Refused(400, "`paths` is empty; name a file or directory")
    for target in targets:
        needs(os.path.exists(target), "path", target)
    handle, temporary = tempfile.mkstemp(suffix=".zip", dir="/tmp")
    with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as made:
        for target in targets:
            parent = os.path.dirname(target)
            below = (full for full, kind in files_below(target) if kind == "file") if os.path.isdir(target) else [target]
            for full in below:
                if os.path.isfile(full) and not os.path.islink(full):
                    made.write(full, os.path.relpath(full, parent))
    name = os.path.basename(targets[0]) if len(targets) == 1 else "download"
    return {"archive": temporary, "name": name or "archive"}


def words(text):
    return re.findall(r"\w+|[^\w\s]|\s+", text)


def segments(old, new):
    """What differs between two lines."""
    a, b = words(old), words(new)
    left, right = [], []
    for tag, i, j, k, l in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        changed = tag != "equal"
        if i != j:
            left.append({"text": "".join(a[i:j]), "changed": changed})
        if k != l:
            right.append({"text": "".join(b[k:l]), "changed": changed})
    return left, right


def compared(path, cwd):
    target = resolve(path, cwd)
    needs(os.path.isfile(target), "file", target)
    try:
        text = read_text(target)
    except UnicodeDecodeError:
        raise Refused(422, f"{target} is not text, so it cannot be compared") from None
    if len(text) > MAX_COMPARED:
        raise Refused(422, f"{target} has {len(text)} characters; the limit for a comparison is {MAX_COMPARED}")
    return {"path": target, "name": os.path.basename(target), "notices": []}, text.splitlines()


def compare(cwd, original, revised, ignore_whitespace=False):
    (old, a), (new, b) = compared(original, cwd), compared(revised, cwd)
    key = (lambda line: re.sub(r"\s+", "", line)) if ignore_whitespace else (lambda line: line)
    matcher = difflib.SequenceMatcher(None, list(map(key, a)), list(map(key, b)), autojunk=False)
    hunks, additions, deletions = [], 0, 0
    whole = lambda text: [{"text": text, "changed": False}]
    for group in matcher.get_grouped_opcodes(3):
        lines = []
        for tag, i, j, k, l in group:
            if tag == "equal":
                for x, y in zip(range(i, j), range(k, l)):
                    lines.append({"type": "context", "oldNumber": x + 1, "newNumber": y + 1, "content": a[x], "revisedContent": b[y], "segments": whole(a[x])})
                continue
            removed = [{"type": "removed", "oldNumber": x + 1, "newNumber": None, "content": a[x], "segments": whole(a[x])} for x in range(i, j)]
            added = [{"type": "added", "oldNumber": None, "newNumber": y + 1, "content": b[y], "segments": whole(b[y])} for y in range(k, l)]
            for left, right in zip(removed, added):
                if max(len(left["content"]), len(right["content"])) <= MAX_LINE:
                    left["segments"], right["segments"] = segments(left["content"], right["content"])
            lines += removed + added
            additions, deletions = additions + len(added), deletions + len(removed)
        (_, i, _, k, _), (_, _, j, _, l) = group[0], group[-1]
        hunks.append({"header": f"@@ -{i + (j > i)},{j - i} +{k + (l > k)},{l - k} @@", "lines": lines})
    return {"original": old, "revised": new, "additions": additions, "deletions": deletions, "hunks": hunks}


OPERATIONS = {
    "list": list_files,
    "set_cwd": set_cwd,
    "read": read,
    "display": display,
    "about": about,
    "content": content,
    "copy": copy,
    "write": write,
    "replace": replace,
    "grep": grep,
    "glob": glob,
    "search": search,
    "mkdir": mkdir,
    "move": move,
    "delete": delete,
    "archive": archive,
    "compare": compare,
}


def main():
    asked = json.load(sys.stdin.buffer)
    given = {name: value for name, value in asked["arguments"].items() if value is not None}
    content = b""
    try:
        answer = OPERATIONS[asked["op"]](asked["cwd"], **given)
        if isinstance(answer, tuple):
            answer, content = answer
        answer = {"ok": answer}
    except Refused as refused:
        answer = {"error": {"status": refused.status, "detail": refused.detail}}
    except OSError as error:
        status = 403 if isinstance(error, PermissionError) else 400
        answer = {"error": {"status": status, "detail": f"{error.strerror or error}: {error.filename}"}}
    except UnicodeDecodeError:
        answer = {"error": {"status": 415, "detail": "the file is not UTF-8 text"}}
    except UnicodeEncodeError:
        answer = {"error": {"status": 400, "detail": "the text is not valid Unicode"}}
    # Names of files need not be text.
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + content)


main()
