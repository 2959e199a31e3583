"""Runs in a sandbox: answers questions of the host about files, one line of JSON for each."""

import grp
import json
import os
import pwd
import shutil
import stat
import sys
import time

MOST = 150_000
watches = {}


def kind(mode):
    if stat.S_ISLNK(mode):
        return "FILE_TYPE_SYMLINK"
    return "FILE_TYPE_DIRECTORY" if stat.S_ISDIR(mode) else "FILE_TYPE_FILE"


def name_of(find, number):
    try:
        return find(number)[0]
    except KeyError:
        return str(number)


def entry(path):
    found = os.lstat(path)
    shown = found
    target = None
    if stat.S_ISLNK(found.st_mode):
        target = os.path.realpath(path)
        try:
            shown = os.stat(path)
        except OSError:
            pass
    made = {
        "name": os.path.basename(path) or "/",
        "type": kind(shown.st_mode),
        "path": path,
        "size": str(shown.st_size),
        "mode": stat.S_IMODE(shown.st_mode),
        "permissions": stat.filemode(shown.st_mode),
        "owner": name_of(pwd.getpwuid, found.st_uid),
        "group": name_of(grp.getgrgid, found.st_gid),
        "modifiedTime": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(found.st_mtime))
        + f".{found.st_mtime_ns % 10**9:09d}Z",
    }
    if target is not None:
        made["symlinkTarget"] = target
    return made


def do_stat(path):
    return {"entry": entry(path)}


def do_make(path):
    if os.path.isdir(path):
        raise FileExistsError(17, "directory already exists")
    os.makedirs(path)
    return {"entry": entry(path)}


def do_move(source, destination):
    os.lstat(source)
    os.makedirs(os.path.dirname(destination), exist_ok=True)
    os.rename(source, destination)
    return {"entry": entry(destination)}


def do_remove(path):
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return {}
    if stat.S_ISDIR(found.st_mode):
        shutil.rmtree(path)
    else:
        os.unlink(path)
    return {}


def below(path, depth):
    for one in sorted(os.scandir(path), key=lambda it: it.name):
        yield one.path
        if depth > 1 and one.is_dir(follow_symlinks=False):
            try:
                yield from below(one.path, depth - 1)
            except OSError:
                pass


def do_list(path, depth, skip):
    if not os.path.isdir(path):
        os.lstat(path)
        raise NotADirectoryError(20, "path is not a directory")
    entries, size, more = [], 0, False
    for at, one in enumerate(below(path, max(depth, 1))):
        if at < skip:
            continue
        try:
            made = entry(one)
        except OSError:
            continue
        size += len(json.dumps(made))
        if size > MOST:
            more = True
            break
        entries.append((at + 1, made))
    return {
        "entries": [made for _, made in entries],
        "next": entries[-1][0] if entries and more else 0,
    }


def look(path, recursive):
    found = {}
    for one in below(path, 64 if recursive else 1):
        try:
            seen = os.lstat(one)
        except OSError:
            continue
        is_directory = stat.S_ISDIR(seen.st_mode)
        written = (0, 0) if is_directory else (seen.st_mtime_ns, seen.st_size)
        found[os.path.relpath(one, path)] = (seen.st_ino, written, seen.st_mode)
    return found


def do_watch(path, recursive):
    if not os.path.isdir(path):
        os.lstat(path)
        raise NotADirectoryError(20, "path is not a directory")
    number = str(len(watches) + 1)
    watches[number] = [path, recursive, look(path, recursive)]
    return {"id": number}


def do_changes(id):
    path, recursive, before = watches[id]
    try:
        now = look(path, recursive)
    except OSError:
        now = {}
    watches[id][2] = now
    gone = {seen[0]: name for name, seen in before.items() if name not in now}
    events = []
    for name, seen in now.items():
        if name in before:
            known = before[name]
            if known[:2] != seen[:2]:
                events.append((name, "EVENT_TYPE_WRITE"))
            if known[2] != seen[2]:
                events.append((name, "EVENT_TYPE_CHMOD"))
        else:
            renamed = gone.pop(seen[0], None)
            if renamed is not None:
                events.append((renamed, "EVENT_TYPE_RENAME"))
            events.append((name, "EVENT_TYPE_CREATE"))
            if seen[1][1] and renamed is None:
                events.append((name, "EVENT_TYPE_WRITE"))
    events += [(name, "EVENT_TYPE_REMOVE") for name in gone.values()]
    return {"events": [{"name": name, "type": what} for name, what in events[:1000]]}


def do_unwatch(id):
    watches.pop(id, None)
    return {}


def used():
    pages = ticks = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/statm") as file:
                    pages += int(file.read().split()[1])
                with open(f"/proc/{name}/stat") as file:
                    ticks += sum(
                        map(int, file.read().rpartition(")")[2].split()[11:13])
                    )
            except (OSError, ValueError, IndexError):
                pass
    return pages * os.sysconf("SC_PAGE_SIZE"), ticks / os.sysconf("SC_CLK_TCK")


def do_metrics():
    since = time.monotonic()
    _, before = used()
    time.sleep(0.05)
    memory, after = used()
    spent = max(after - before, 0) / (time.monotonic() - since)
    disk = os.statvfs("/workspace")
    total = disk.f_blocks * disk.f_frsize
    return {
        "ts": int(time.time()),
        "cpu_count": os.cpu_count() or 1,
        "cpu_used_pct": round(spent * 100, 2),
        "mem_used": memory,
        "mem_cache": 0,
        "disk_used": total - disk.f_bfree * disk.f_frsize,
        "disk_total": total,
    }


def do_compose(paths, destination):
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
    return {"entry": entry(destination)}


ALL = {
    "stat": do_stat,
    "make": do_make,
    "move": do_move,
    "remove": do_remove,
    "list": do_list,
    "watch": do_watch,
    "changes": do_changes,
    "unwatch": do_unwatch,
    "metrics": do_metrics,
    "compose": do_compose,
}

for line in sys.stdin:
    asked = json.loads(line)
    number = asked.pop("number")
    try:
        answer = {"number": number, "done": ALL[asked.pop("op")](**asked)}
    except KeyError as error:
        answer = {"number": number, "error": ["not_found", str(error)]}
    except FileNotFoundError as error:
        answer = {"number": number, "error": ["not_found", error.strerror]}
    except FileExistsError as error:
        answer = {"number": number, "error": ["already_exists", error.strerror]}
    except NotADirectoryError as error:
        answer = {"number": number, "error": ["invalid_argument", error.strerror]}
    except PermissionError as error:
        answer = {"number": number, "error": ["permission_denied", error.strerror]}
    except (OSError, ValueError) as error:
        text = getattr(error, "strerror", None) or str(error)
        answer = {"number": number, "error": ["internal", text]}
    print(json.dumps(answer), flush=True)
