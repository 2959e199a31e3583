#!/usr/bin/env python3
"""Runs a framework's own suite for sandboxes against a server of Cellblock, and prints the numbers as one line of JSON.

    python3 integrations/judge.py langchain --url http://127.0.0.1:8080 --venvs target/judges

The environment of a suite is made below `--venvs` with the versions and hashes in its `requirements.txt`, and used again until they
change. The server needs `limits: {max_network: loopback}` in its configuration. Exit codes: 0 if everything passed, 1 if tests failed,
2 if the suite could not run.

Only the standard library is used here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

#: Names of suites, with the folder of their package and that of their `requirements.txt`.
SUITES = {
    "langchain": ("langchain", "langchain"),
    "langchain-0.6": ("langchain", "langchain/deepagents06"),
    "inspect": ("inspect", "inspect"),
    "openai-agents": ("openai-agents", "openai-agents"),
    "pydantic-ai": ("pydantic-ai", "pydantic-ai"),
}


class JudgeError(Exception):
    """Why a suite could not run."""


def digest(package: Path, requirements: Path) -> str:
    """What an environment is made of: the interpreter, the locked packages and the package itself."""
    state = hashlib.sha256(f"{sys.version}\n{HERE}\n".encode())
    sources = [path for path in (package / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    for path in [requirements, package / "pyproject.toml", *sorted(sources)]:
        state.update(f"{path.relative_to(HERE)}\n".encode() + path.read_bytes())
    return state.hexdigest()


def environment(name: str, venvs: Path, seconds: float) -> Path:
    """Makes the environment of a suite, unless it is there, and returns its interpreter."""
    package, requirements = HERE / SUITES[name][0], HERE / SUITES[name][1] / "requirements.txt"
    venv = venvs / name
    python, stamp = venv / "bin/python", venv / "made-from"
    wanted = digest(package, requirements)
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(venv, ignore_errors=True)
    venvs.mkdir(parents=True, exist_ok=True)
    checked([sys.executable, "-m", "venv", str(venv)], seconds)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    checked([*pip, "--require-hashes", "-r", str(requirements)], seconds)
    # A copy, so that building it leaves nothing in the repository.
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "package")
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        checked([*pip, "--no-deps", "--no-build-isolation", str(copy)], seconds)
    # The client as it is in the repository: its wheel is built with the program in it.
    [packages] = venv.glob("lib/python*/site-packages")
    (packages / "cellblock-client.pth").write_text(f"{HERE.parent / 'python/src'}\n")
    stamp.write_text(wanted)
    return python


def checked(command: list[str], seconds: float) -> None:
    """Runs a command, whose output is for people, and raises if it fails."""
    code = bounded(command, HERE, dict(os.environ), seconds)
    if code != 0:
        raise JudgeError(f"`{' '.join(command)}` exited with {code}")


def bounded(command: list[str], folder: Path, env: dict[str, str], seconds: float) -> int:
    """Runs a command for some time at most, with its output on standard error."""
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=sys.stderr, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired as error:
        raise JudgeError(f"`{' '.join(command)}` did not end in {seconds:g} seconds") from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run(name: str, python: Path, url: str, key: str | None, junit: Path, seconds: float) -> dict[str, Any]:
    """Runs the tests of a suite and returns the numbers of its report."""
    tests = HERE / SUITES[name][0] / "tests"
    env = {**os.environ, "CELLBLOCK_URL": url, "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("PYTHONPATH", None)
    env.pop("CELLBLOCK_KEY", None)
    if key is not None:
        env["CELLBLOCK_KEY"] = key
    junit.unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={junit}", str(tests)]
    code = bounded(command, tests.parent, env, seconds)
    if not junit.is_file():
        raise JudgeError(f"pytest exited with {code} and wrote no report")
    return counted(junit)


def counted(junit: Path) -> dict[str, Any]:
    """Counts the results in a report, of all tests and of each file.

    Expected failures are skipped tests there; `skips` has the reason of each.
    """
    total = {"passed": 0, "failed": 0, "skipped": 0, "errors": 0}
    files: dict[str, dict[str, int]] = {}
    skips: dict[str, str] = {}
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        found = {child.tag: child for child in case}
        verdict = "errors" if "error" in found else "failed" if "failure" in found else "skipped" if "skipped" in found else "passed"
        file = next((part for part in case.get("classname", "").split(".") if part.startswith("test_")), case.get("name", ""))
        for numbers in (total, files.setdefault(file, dict.fromkeys(total, 0))):
            numbers[verdict] += 1
        if verdict == "skipped":
            skips[case.get("name", "")] = found["skipped"].get("message", "")
    return {**total, "files": files, "skips": skips}


def main() -> int:
    """Runs one suite."""
    parser = argparse.ArgumentParser(description="Runs a framework's suite for sandboxes against a server of Cellblock.")
    parser.add_argument("name", choices=[*SUITES, "list"], help="the suite; `list` prints the names of all of them")
    parser.add_argument("--url", help="address of the server, such as http://127.0.0.1:8080")
    parser.add_argument("--key", default=os.environ.get("CELLBLOCK_KEY"), help="API key, if the server requires one")
    parser.add_argument("--venvs", type=Path, help="folder below which environments are made")
    parser.add_argument("--junit", type=Path, help="where to write pytest's report; by default, next to the environment")
    parser.add_argument("--timeout", type=float, default=900, help="maximum seconds of each step")
    given = parser.parse_args()
    if given.name == "list":
        print("\n".join(SUITES))
        return 0
    if given.url is None or given.venvs is None:
        parser.error("--url and --venvs are required")
    venvs = given.venvs.resolve()
    junit = (given.junit or venvs / f"{given.name}.xml").resolve()
    start = time.monotonic()
    try:
        python = environment(given.name, venvs, given.timeout)
        start = time.monotonic()
        numbers = run(given.name, python, given.url, given.key, junit, given.timeout)
        code = 1 if numbers["failed"] or numbers["errors"] else 0 if numbers["passed"] else 2
    except JudgeError as error:
        numbers = {"passed": 0, "failed": 0, "skipped": 0, "errors": 1, "message": str(error)}
        code = 2
    print(json.dumps({"name": given.name, **numbers, "seconds": round(time.monotonic() - start, 1)}), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
