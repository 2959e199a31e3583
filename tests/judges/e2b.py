#!/usr/bin/env python3
"""Runs E2B's own tests of its code interpreter against a server of Cellblock, and prints the numbers as one line of JSON.

    CELLBLOCK_JUDGE_E2B=FOLDER python3 tests/judges/e2b.py --url http://127.0.0.1:8080 --venvs target/judges

The folder is a checkout of `e2b-dev/code-interpreter`, whose tests no package has. The server needs `limits: {max_network: loopback}` and
`dialects: {e2b: {}}` in its configuration. Tests of what a server of Cellblock does not have count as skipped, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent

# Parts of the names of tests, and why they cannot pass here.
LACKING = {
    r"java(?!script)": "needs Java",
    r"test_r\b|_r_kernel|cwd_r\b|env_vars.*\br\b": "needs R, which the default image lacks",
    r"systemd": "restarts services of E2B's machines",
    r"ts_kernel": "needs TypeScript with type annotations",
    r"box_and_whiskers": "calls `boxplot(labels=)`, which matplotlib no longer has",
}


def environment(venvs: Path) -> Path:
    """Makes the environment, unless it is there for these requirements, and returns its interpreter."""
    requirements = HERE / "e2b/requirements.txt"
    venv, wanted = venvs / "e2b", requirements.read_text()
    python, stamp = venv / "bin/python", venv / "made-from"
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(venv, ignore_errors=True)
    for command in (
        [sys.executable, "-m", "venv", str(venv)],
        [
            str(python),
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--require-hashes",
            "-r",
            str(requirements),
        ],
    ):
        subprocess.run(command, check=True, stdout=sys.stderr, stdin=subprocess.DEVNULL)
    stamp.write_text(wanted)
    return python


def reason(name: str) -> str | None:
    """Why a test cannot pass here, if it cannot."""
    return next(
        (why for pattern, why in LACKING.items() if re.search(pattern, name)), None
    )


def main() -> int:
    """Runs the tests."""
    parser = argparse.ArgumentParser(
        description="Runs E2B's own tests against a server of Cellblock."
    )
    parser.add_argument(
        "--url",
        required=True,
        help="address of the server, such as http://127.0.0.1:8080",
    )
    parser.add_argument(
        "--venvs",
        required=True,
        type=Path,
        help="folder below which the environment is made",
    )
    given = parser.parse_args()
    checkout = os.environ.get("CELLBLOCK_JUDGE_E2B")
    if checkout is None:
        print(
            "CELLBLOCK_JUDGE_E2B names no checkout of e2b-dev/code-interpreter",
            file=sys.stderr,
        )
        return 2
    python = environment(given.venvs.resolve())
    with tempfile.TemporaryDirectory() as folder:
        # Apart from the package beside them, which the installed one is not.
        shutil.copytree(Path(checkout, "python/tests"), Path(folder, "tests"))
        shutil.copy(Path(checkout, "python/pytest.ini"), folder)
        url = f"{given.url}/e2b"
        env = {
            **os.environ,
            "E2B_API_URL": url,
            "E2B_SANDBOX_URL": url,
            "E2B_TESTS_TEMPLATE": "code-interpreter-v1",
        }
        env["E2B_API_KEY"] = "e2b_" + "0" * 40
        junit = Path(folder, "report.xml")
        command = [
            str(python),
            "-m",
            "pytest",
            "tests",
            "-q",
            "-p",
            "no:cacheprovider",
            "--timeout=90",
            f"--junitxml={junit}",
        ]
        subprocess.run(
            command,
            cwd=folder,
            env=env,
            stdout=sys.stderr,
            stdin=subprocess.DEVNULL,
            timeout=1800,
            check=False,
        )
        cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
    numbers = {"passed": 0, "failed": 0, "skipped": 0, "errors": 0}
    skips: dict[str, str] = {}
    for case in cases:
        name = f"{case.get('classname')}.{case.get('name')}"
        found = {child.tag: child for child in case}
        why = found["skipped"].get("message", "") if "skipped" in found else None
        if "error" in found or "failure" in found:
            why = reason(name)
        if why is not None:
            numbers["skipped"] += 1
            skips[name] = why
        elif "error" in found or "failure" in found:
            numbers["errors" if "error" in found else "failed"] += 1
        else:
            numbers["passed"] += 1
    print(json.dumps({**numbers, "skips": skips}))
    return 1 if numbers["failed"] or numbers["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
