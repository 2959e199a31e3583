"""The one place that skips a test of the kernel, and records that it did."""

import importlib.util
import json
import os
import shutil
import sys
import unittest
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[4]


def needs(*modules):
    """Skips a test, with a record, where the interpreter lacks a package; fails it where all are required."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    reason = f"not installed beside {sys.executable}: {', '.join(missing)}"
    return _skip_without([f"module:{name}" for name in missing], reason)


def needs_python(*version):
    """Skips a test, with a record, where the interpreter is older; fails it where all are required."""
    lacking = [f"python:{'.'.join(map(str, version))}"] if sys.version_info < version else []
    return _skip_without(lacking, f"{sys.executable} is Python {sys.version.split()[0]}")


def needs_program(name):
    """Skips a test, with a record, where a program is not on the PATH of kernels in tests."""
    lacking = [] if shutil.which(name, path="/usr/bin:/bin") else [f"program:{name}"]
    return _skip_without(lacking, f"`{name}` is not in /usr/bin or /bin")


def _skip_without(lacking, reason):
    def decorate(test):
        if not lacking:
            return test
        _record(f"{test.__module__}.{test.__qualname__}", lacking, reason)
        return unittest.skip(reason)(test)

    return decorate


def _record(test, capabilities, reason):
    """Appends one line per lacking capability, in the form of the Rust tests."""
    target = _ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    path = Path(os.environ.get("CELLBLOCK_SKIPS") or target / "skips.jsonl")
    path.parent.mkdir(exist_ok=True)
    for capability in capabilities:
        line = json.dumps({"test": test, "capability": capability, "reason": reason})
        with path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        if os.environ.get("CELLBLOCK_REQUIRE_ALL") == "1" and capability not in _expected():
            raise RuntimeError(f"{test} needs {capability}: {reason}; provide it, or list it in .ci/expected-skips")


def _expected():
    """Reads the capabilities that are listed with a reason."""
    text = (_ROOT / ".ci" / "expected-skips").read_text(encoding="utf-8")
    fields = [line.split(maxsplit=1) for line in text.splitlines() if not line.startswith("#")]
    return {field[0] for field in fields if len(field) == 2}
