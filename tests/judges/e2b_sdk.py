#!/usr/bin/env python3
"""Runs the tests of E2B's SDKs against a server of Cellblock, and prints the numbers as one line of JSON.

    CELLBLOCK_JUDGE_E2B_SDK=FOLDER CELLBLOCK_HOME=target/cellblock-home \
        python3 tests/judges/e2b_sdk.py python --program target/debug/cellblock --venvs target/judges

The folder is a checkout of `e2b-dev/E2B`. The server is this program's own and has a key with the default quotas. Of
the tests, those run that reach a server; the others replace it by one of their own. `--only TEXT` chooses among them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import e2b

HERE = Path(__file__).resolve().parent

# Folders of tests that reach a server.
PYTHON = (
    "tests/sync/sandbox_sync",
    "tests/sync/api_sync",
    "tests/async/sandbox_async",
    "tests/async/api_async",
    "tests/shared/git",
)
JAVASCRIPT = ("tests/sandbox", "tests/api")


@contextmanager
def server(program: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Starts a server that has one key; returns its address and the key."""
    config = folder / "cellblock.yaml"
    config.write_text("limits: {max_network: loopback}\ndialects: {e2b: {}}\n")
    env = {**os.environ, "CELLBLOCK_SERVE__STATE": str(folder / "state")}
    create = [str(program), "key", "create", "judge", "--e2b", "--yes", "--config"]
    key = subprocess.run(
        [*create, str(config)], check=True, env=env, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    serve = [str(program), "serve", "--no-model", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*serve, "--config", str(config)],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline().strip()
        if not first.startswith("listening on "):
            raise SystemExit(f"the server did not start: `{first}`")
        yield first.removeprefix("listening on "), key
    finally:
        process.terminate()
        process.wait()


def python(
    checkout: Path, folder: Path, venvs: Path, env: dict[str, str], only: str
) -> None:
    """Runs the tests of the Python SDK with the released package."""
    sdk = checkout / "packages/python-sdk"
    shutil.copytree(sdk / "tests", folder / "tests")
    shutil.copy(sdk / "pytest.ini", folder)
    command = [str(e2b.environment(venvs)), "-m", "pytest", *PYTHON, "-q"]
    command += [
        "-p",
        "no:cacheprovider",
        "--timeout=120",
        f"--junitxml={folder / 'report.xml'}",
    ]
    if only:
        command += ["-k", only]
    run(command, folder, env)


def javascript(
    checkout: Path, folder: Path, venvs: Path, env: dict[str, str], only: str
) -> None:
    """Runs the tests of the JavaScript SDK, which import the sources beside them."""
    sdk = checkout / "packages/js-sdk"
    for part in ("src", "tests"):
        shutil.copytree(sdk / part, folder / part)
    shutil.copy(sdk / "tsconfig.json", folder)
    packages = venvs / "e2b-sdk"
    packages.mkdir(parents=True, exist_ok=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "e2b" / file, packages)
    npm = [
        "npm",
        "ci",
        "--legacy-peer-deps",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]
    run(npm, packages, env)
    (folder / "node_modules").symlink_to(packages / "node_modules")
    shutil.copy(packages / "package.json", folder)
    # One file at a time: a key has a number of sandboxes.
    (folder / "vitest.config.mjs").write_text(
        "export default {test: {testTimeout: 60000, hookTimeout: 60000, fileParallelism: false,"
        " setupFiles: ['tests/globalFetchFallback.setup.ts']}};\n"
    )
    command = ["npx", "vitest", "run", *JAVASCRIPT, "--reporter=junit"]
    command += [f"--outputFile={folder / 'report.xml'}"]
    if only:
        command += ["-t", only]
    run(command, folder, env)


def run(command: list[str], folder: Path, env: dict[str, str]) -> None:
    """Runs a command, whose output is not the numbers."""
    subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdout=sys.stderr,
        stdin=subprocess.DEVNULL,
        timeout=3600,
        check=False,
    )


SUITES = {"python": python, "javascript": javascript}


def main() -> int:
    """Runs the tests."""
    parser = argparse.ArgumentParser(
        description="Runs the tests of E2B's SDKs against a server of Cellblock."
    )
    parser.add_argument("language", choices=SUITES, help="language of the SDK")
    parser.add_argument(
        "--program", required=True, type=Path, help="the program `cellblock`"
    )
    parser.add_argument(
        "--venvs",
        required=True,
        type=Path,
        help="folder below which packages are installed",
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="part of the names of the tests"
    )
    given = parser.parse_args()
    checkout = os.environ.get("CELLBLOCK_JUDGE_E2B_SDK")
    if checkout is None:
        print(
            "CELLBLOCK_JUDGE_E2B_SDK names no checkout of e2b-dev/E2B", file=sys.stderr
        )
        return 2
    with (
        tempfile.TemporaryDirectory() as state,
        tempfile.TemporaryDirectory() as folder,
    ):
        with server(given.program.resolve(), Path(state)) as (address, key):
            url = f"{address}/e2b"
            env = {
                **os.environ,
                "E2B_API_URL": url,
                "E2B_SANDBOX_URL": url,
                "E2B_API_KEY": key,
            }
            suite = SUITES[given.language]
            suite(Path(checkout), Path(folder), given.venvs.resolve(), env, given.only)
        report = Path(folder, "report.xml")
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    numbers = {"passed": 0, "failed": 0, "skipped": 0, "errors": 0}
    skips: dict[str, str] = {}
    for case in cases:
        found = {child.tag: child for child in case}
        name = f"{case.get('classname')}.{case.get('name')}"
        if "skipped" in found:
            numbers["skipped"] += 1
            skips[name] = found["skipped"].get("message") or "the suite skips it"
        elif "failure" in found or "error" in found:
            numbers["errors" if "error" in found else "failed"] += 1
            print(f"failed: {name}", file=sys.stderr)
        else:
            numbers["passed"] += 1
    print(json.dumps({**numbers, "skips": skips}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
