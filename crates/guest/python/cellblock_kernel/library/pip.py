"""`pip` in a sandbox with a way out: pip itself, fetched from the index that it will use.

The image has no pip, since most sandboxes reach nothing. What it installs is kept in `PYTHONUSERBASE`, which the
kernel and all other programs of the sandbox search after the image's own packages.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from html.parser import HTMLParser
from importlib.util import find_spec

_INDEX = "https://pypi.org/simple"
_WHEEL = re.compile(r"pip-(\d+(?:\.\d+)*)-py3-none-any\.whl$")
_PYTHON = re.compile(r">=\s*3\.(\d+)")
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
# Pages and wheels are smaller.
_MOST = 64 << 20


class _Links(HTMLParser):
    """The links of a page of an index."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in given:
            url, _, fragment = given["href"].partition("#")
            kind, _, digest = fragment.partition("=")
            found = {"url": url, "requires-python": given.get("data-requires-python", "")}
            if kind == "sha256":
                found["sha256"] = digest
            self.files.append(found)


def index_of(arguments: list[str]) -> str:
    """Returns the index that pip will use."""
    for place, argument in enumerate(arguments):
        if argument in ("-i", "--index-url") and place + 1 < len(arguments):
            return arguments[place + 1]
        if argument.startswith("--index-url="):
            return argument.partition("=")[2]
    return os.environ.get("PIP_INDEX_URL") or _INDEX


def files_of(page: bytes, kind: str) -> list[dict[str, str]]:
    """Reads a page of an index: `url`, `requires-python` and, where it is known, `sha256` of each file."""
    if "json" in kind:
        files = json.loads(page).get("files", [])
        hashes = [file.get("hashes", {}) for file in files]
        return [
            {"url": file["url"], "requires-python": file.get("requires-python") or "", **known}
            for file, known in zip(files, hashes)
            if not file.get("yanked")
        ]
    links = _Links()
    links.feed(page.decode("utf-8", "replace"))
    return links.files


def newest(files: list[dict[str, str]], minor: int) -> dict[str, str] | None:
    """Returns the newest wheel of pip that runs on Python 3.`minor`."""
    best: tuple[tuple[int, ...], dict[str, str]] | None = None
    for file in files:
        named = _WHEEL.search(urllib.parse.urlsplit(file["url"]).path)
        needed = _PYTHON.search(file["requires-python"])
        if named is None or (needed is not None and int(needed[1]) > minor):
            continue
        version = tuple(int(part) for part in named[1].split("."))
        if best is None or version > best[0]:
            best = (version, file)
    return best[1] if best else None


def _get(url: str) -> tuple[bytes, str, str]:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": _ACCEPT}), timeout=60) as answer:
        return answer.read(_MOST), answer.headers.get_content_type(), answer.url


def _fetch(index: str, folder: str) -> str:
    """Fetches pip, and returns the path of its wheel."""
    page, kind, base = _get(index.rstrip("/") + "/pip/")
    found = newest(files_of(page, kind), sys.version_info.minor)
    if found is None:
        raise LookupError(f"{index} has no wheel of pip for Python {sys.version_info.major}.{sys.version_info.minor}")
    wheel, _, _ = _get(urllib.parse.urljoin(base, found["url"]))
    wanted = found.get("sha256")
    if wanted is not None and hashlib.sha256(wheel).hexdigest() != wanted:
        raise LookupError(f"the wheel of pip from {index} is not the one that the index names")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "pip-py3-none-any.whl")
    with open(f"{path}.{os.getpid()}", "wb") as file:
        file.write(wheel)
    os.replace(file.name, path)
    return path


def main(arguments: list[str]) -> None:
    """Becomes pip."""
    if find_spec("pip") is not None:
        os.execv(sys.executable, [sys.executable, "-m", "pip", *arguments])
    folder = os.environ.get("PYTHONUSERBASE") or os.path.expanduser("~/.local")
    index = index_of(arguments)
    wheel = os.path.join(folder, "pip-py3-none-any.whl")
    if not os.path.exists(wheel):
        try:
            wheel = _fetch(index, folder)
        except (LookupError, OSError, ValueError, urllib.error.URLError) as error:
            sys.exit(
                f"pip: cannot be fetched from {index}: {error}. The operator allows hosts with `egress.allow` or "
                "`--allow`; another index is named with `--index-url` or PIP_INDEX_URL"
            )
    os.execv(sys.executable, [sys.executable, f"{wheel}/pip", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
