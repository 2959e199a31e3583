"""Contexts: sets of variables of one language that do not see each other, in one kernel.

A context of Python is what `__main__` contains while the context is in use; the dictionary itself stays the same, so that functions
find the names of their context. A context of another language is a process of its own.
"""

from __future__ import annotations

import os
import sys
from typing import Any

_FIRST = ""

# What a new context contains.
_base: dict[str, Any] = {}
# Contexts of Python that are not in use.
_asleep: dict[str, dict[str, Any]] = {}
_directories: dict[str, str] = {}
# The context in use, by language.
_current: dict[str, str] = {}
# Processes of contexts that are not in use, by language and context.
_processes: dict[tuple[str, str], Any] = {}


def begin(names: dict[str, Any]) -> None:
    """Starts with one context, which contains these names. Earlier ones are gone."""
    for process in _processes.values():
        process.close()
    for known in (_base, _asleep, _directories, _current, _processes):
        known.clear()
    _base.update(names)


def enter(language: str, context: str, directory: str) -> None:
    """Makes a context the one in use, and creates it if it is new."""
    if language == "python":
        _enter_python(context, directory)
    else:
        _exchange(language, context)


def drop(language: str, context: str, directory: str) -> None:
    """Ends a context. If it is in use, it is empty from here on, and its directory is the one that it began in."""
    is_current = _current.get(language, _FIRST) == context
    if language == "python":
        _asleep.pop(context, None)
        _directories.pop(context, None)
        if is_current:
            _fill(dict(_base))
            try:
                os.chdir(directory)
            except OSError:
                # It never was there, or is not any more.
                pass
        return
    process = _running().pop(language, None) if is_current else _processes.pop((language, context), None)
    if process is not None:
        process.close()


def _enter_python(context: str, directory: str) -> None:
    current = _current.get("python", _FIRST)
    if current == context:
        return
    names = sys.modules["__main__"].__dict__
    _asleep[current], _directories[current] = dict(names), os.getcwd()
    _current["python"] = context
    _fill(_asleep.pop(context, dict(_base)))
    os.chdir(_directories.pop(context, directory))


def _fill(content: dict[str, Any]) -> None:
    names = sys.modules["__main__"].__dict__
    names.clear()
    names.update(content)


def _exchange(language: str, context: str) -> None:
    current = _current.get(language, _FIRST)
    if current == context:
        return
    running = _running()
    if language in running:
        _processes[language, current] = running.pop(language)
    _current[language] = context
    if (language, context) in _processes:
        running[language] = _processes.pop((language, context))


def _running() -> dict[str, Any]:
    # Only here, because few sessions need it.
    from cellblock_kernel import languages

    return languages._running
