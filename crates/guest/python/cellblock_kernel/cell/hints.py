"""Hints for exceptions that need explaining inside a sandbox: there is no network or only a proxy, and nothing can
be installed."""

from __future__ import annotations

import _socket
import errno
import os
from types import TracebackType
from typing import Any

from cellblock_kernel.cell.pattern import pattern
from cellblock_kernel.notebook.names import REQUIREMENTS

NO_NETWORK = (
    "this sandbox has no network, so nothing can be downloaded from inside; have the data bound as an input or written to a file"
    " of the session, then read it from there"
)
# With the network policy `egress`.
ONLY_PROXY = (
    "this sandbox reaches the network only through the proxy that `HTTPS_PROXY` names, and only the hosts on its allow-list: use an"
    " HTTP client that heeds it, such as `urllib.request`, and a host that is allowed"
)
NO_INSTALLER = f"packages cannot be installed from inside of the sandbox: {REQUIREMENTS}"

_DEPTH = 10
_UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EAFNOSUPPORT, errno.ENETDOWN})
_REFUSED = frozenset({errno.EPERM, errno.EACCES})
_NO_NAME = ("getaddrinfo failed", "Name or service not known", "Temporary failure in name resolution", "name resolution")
_INSTALLER = pattern(r"\b(?:pip[\d.]*|conda|mamba|uv|easy_install)\b")


def of(error: BaseException) -> str | None:
    """Returns a hint to add to an exception's message."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen and len(seen) < _DEPTH:
        seen.add(id(one))
        if _needs_network(one):
            return ONLY_PROXY if "CELLBLOCK_EGRESS" in os.environ else NO_NETWORK
        if _installs(one):
            return NO_INSTALLER
        reason = getattr(one, "reason", None)
        one = reason if isinstance(reason, BaseException) else one.__cause__ or one.__context__
    return None


def _needs_network(error: BaseException) -> bool:
    if type(error).__name__ == "gaierror" and isinstance(error, OSError):
        return True
    if isinstance(error, OSError) and error.errno in _UNREACHABLE:
        return True
    if isinstance(error, PermissionError) and error.errno in _REFUSED and _last_file(error.__traceback__).endswith("/socket.py"):
        return not _has_loopback()
    # Libraries with their own resolvers raise their own errors.
    text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    return any(sign in text for sign in _NO_NAME)


def _has_loopback() -> bool:
    """Returns whether code can make sockets for its own servers, so that a refusal has another reason."""
    try:
        _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def _installs(error: BaseException) -> bool:
    """Returns whether a program that installs packages was missing or failed."""
    command: Any = getattr(error, "cmd", None) if type(error).__name__ == "CalledProcessError" else None
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        return _INSTALLER.fullmatch(error.filename) is not None
    words = command if isinstance(command, str) else " ".join(map(str, command)) if isinstance(command, (list, tuple)) else ""
    return "install" in words and _INSTALLER.search(words) is not None


def _last_file(trace: TracebackType | None) -> str:
    name = ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        trace = trace.tb_next
    return name
