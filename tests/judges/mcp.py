#!/usr/bin/env python3
"""Runs the conformance suite of MCP against a server of Cellblock, and prints the numbers as one line of JSON.

    python3 tests/judges/mcp.py --url http://127.0.0.1:8080 2026-07-28

The server needs `mcp: {conformance_fixtures: true, task_after: 100ms}` in its configuration, and the suite is the package that
`tests/clients/mcp/node` pins. Scenarios that the server is known to fail count as skipped, with the reason in the list there.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

CLIENTS = Path(__file__).resolve().parents[1] / "clients/mcp"


def main() -> int:
    """Runs one revision."""
    parser = argparse.ArgumentParser(
        description="Runs the conformance suite of MCP against a server of Cellblock."
    )
    parser.add_argument("revision", choices=["2025-11-25", "2026-07-28"])
    parser.add_argument(
        "--url",
        required=True,
        help="address of the server, such as http://127.0.0.1:8080",
    )
    given = parser.parse_args()
    expected = CLIENTS / f"expected-failures-{given.revision}.yml"
    reasons: dict[str, str] = {}
    reason = ""
    for entry, why in re.findall(
        r"^\s*- (\S+) # (.+)$", expected.read_text(), re.MULTILINE
    ):
        reason = reason if why.startswith("the same") else why
        # An entry may name one check of a scenario, which fails by it.
        reasons[entry.partition(":")[0]] = reason
    program = (
        CLIENTS / "node/node_modules/@modelcontextprotocol/conformance/dist/index.js"
    )
    if not program.is_file():
        print(
            f"the suite is not installed; run `npm ci --ignore-scripts` in {program.parents[4]}",
            file=sys.stderr,
        )
        return 2
    command = [
        "node",
        str(program),
        "server",
        "--url",
        f"{given.url}/mcp",
        "--requirements",
        given.revision,
    ]
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=900,
        check=False,
    )
    _, found, summary = ran.stdout.partition("=== SUMMARY ===")
    if not found:
        print(
            f"the suite said nothing; it needs Node 22 or newer:\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}",
            file=sys.stderr,
        )
        return 2
    print(summary, file=sys.stderr)
    scored, _, others = summary.partition("Not scored")
    scenarios = re.findall(r"^([✓✗]) (\S+): ", scored, re.MULTILINE)
    for name, why in re.findall(r"^\s+✗ (\S+) \((.+)\)$", others, re.MULTILINE):
        reasons.setdefault(name, f"the suite does not score it: {why}")
    failed = [name for mark, name in scenarios if mark == "✗"]
    known = {name: reasons[name] for name in failed if name in reasons}
    numbers = {
        "passed": len(scenarios) - len(failed),
        "failed": len(failed) - len(known),
        "skipped": len(known),
        "skips": known,
    }
    print(json.dumps(numbers))
    return 1 if numbers["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
