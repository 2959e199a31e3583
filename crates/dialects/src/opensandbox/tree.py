"""Answers one request about files. Its argument is the request, and its output the answer, both as JSON."""

import datetime
import fnmatch
import json
import os
import shutil
import stat
import sys

MOST = 10000


def instant(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()


def name_of(module, function, number):
    try:
        return getattr(__import__(module), function)(number)[0]
    except (ImportError, KeyError):
        return str(number)


def info(path):
    found = os.lstat(path)
    mode = found.st_mode
    kinds = {stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink", stat.S_IFREG: "file"}
    return {
        "path": path,
        "type": kinds.get(stat.S_IFMT(mode), "other"),
        "size": found.st_size,
        "modified_at": instant(found.st_mtime),
        "created_at": instant(found.st_ctime),
        "owner": name_of("pwd", "getpwuid", found.st_uid),
        "group": name_of("grp", "getgrgid", found.st_gid),
        # The digits are the octal ones.
        "mode": int(format(stat.S_IMODE(mode), "o")),
    }


def entries(root, depth):
    if os.path.islink(root):
        raise NotADirectoryError(20, "it is a symbolic link; name the directory itself", root)
    found = []
    for name in sorted(os.listdir(root)):
        path = os.path.join(root, name)
        found.append(info(path))
        if depth > 1 and stat.S_ISDIR(os.lstat(path).st_mode):
            found.extend(entries(path, depth - 1))
        if len(found) > MOST:
            raise ValueError(f"there are more than {MOST} entries below {root!r}; list a smaller part")
    return found


def search(root, pattern):
    if not os.path.isdir(root):
        raise FileNotFoundError(2, "no such directory", root)
    found = []
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, root)
            wanted = "/" in pattern and fnmatch.fnmatch(inside, pattern.replace("**/", "*"))
            if wanted or fnmatch.fnmatch(name, pattern.replace("**/", "")):
                found.append(info(path))
            if len(found) > MOST:
                raise ValueError(f"more than {MOST} files match {pattern!r}; search a smaller part")
    return found


def permit(path, wanted):
    if wanted.get("mode") is not None:
        os.chmod(path, int(str(wanted["mode"]), 8))
    owner, group = wanted.get("owner") or None, wanted.get("group") or None
    if owner or group:
        here = info(path)
        if (owner or here["owner"]) != here["owner"] or (group or here["group"]) != here["group"]:
            shutil.chown(path, owner, group)


def replace(path, old, new):
    if not old:
        raise ValueError(f"the text to replace in {path!r} is empty")
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    count = text.count(old)
    if count:
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text.replace(old, new))
    return {"replacedCount": count}


def remove(path, directory):
    if directory:
        shutil.rmtree(path)
    else:
        os.remove(path)


def measure():
    usage = os.getloadavg()[0]
    processors = os.cpu_count() or 1
    memory = {}
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            name, _, rest = line.partition(":")
            memory[name] = int(rest.split()[0]) * 1024
    total = memory.get("MemTotal", 0)
    return {
        "processors": processors,
        "used": min(100.0, 100.0 * usage / processors),
        "memory": total,
        "memory_used": total - memory.get("MemAvailable", 0),
    }


def answer(order):
    what = order["do"]
    if what == "measure":
        return measure()
    if what == "info":
        return {"files": {given: info(path) for given, path in order["paths"]}}
    if what == "list":
        return {"files": entries(order["path"], order["depth"])}
    if what == "search":
        return {"files": search(order["path"], order["pattern"])}
    if what == "permit":
        for path, wanted in order["files"].items():
            permit(path, wanted)
    elif what == "make":
        for path, wanted in order["files"].items():
            os.makedirs(path, exist_ok=True)
            permit(path, wanted)
    elif what == "rename":
        for source, target in order["files"]:
            if not os.path.lexists(source):
                raise FileNotFoundError(2, "no such file", source)
            os.makedirs(os.path.dirname(target) or "/", exist_ok=True)
            os.rename(source, target)
    elif what == "replace":
        return {"files": {given: replace(path, old, new) for given, path, old, new in order["files"]}}
    elif what == "remove":
        for path in order["paths"]:
            remove(path, order["directories"])
    return {}


try:
    result = answer(json.loads(sys.argv[1]))
except (FileNotFoundError, NotADirectoryError) as error:
    kind = "missing" if isinstance(error, FileNotFoundError) else "invalid"
    result = {"kind": kind, "error": f"{error.filename!r}: {error.strerror}"}
except (OSError, ValueError, LookupError) as error:
    result = {"kind": "invalid", "error": str(error)}
print(json.dumps(result))
