#!/usr/bin/env python3
"""Runs the tests of E2B's SDKs against a server of Cellblock, and prints the numbers as one line of JSON.

    CELLBLOCK_JUDGE_E2B_SDK=FOLDER CELLBLOCK_HOME=target/cellblock-home \
        python3 tests/judges/e2b_sdk.py python --program target/debug/cellblock --venvs target/judges

The folder is a checkout of `e2b-dev/E2B`. The server is this program's own: it has a domain with a certificate, and a
key with the default quotas. Of the tests, those run that reach a server; the others replace it by one of their own.
`--only TEXT` chooses among them. Tests of what Cellblock does not have count as skipped, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
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
DOMAIN = "e2b-judge.localhost"
# Names below `localhost` lead to this machine, which few resolvers know.
RESOLVE = """import dns from "node:dns";
const { lookup } = dns;
dns.lookup = (host, ...rest) => lookup(host.endsWith(".localhost") ? "127.0.0.1" : host, ...rest);
"""

# Parts of the names of tests, and why they cannot pass here.
LACKING = {
    r"mask_?request_?host": "needs another `Host` than the one that a client sent",
    r"internet_?access|test_network|network\.test\.ts": "reaches hosts of the internet, or needs E2B's template `httpbin`",
    r"bash_command_scoped_env_vars|signing_as_root": "needs `root`, and a sandbox has one user",
    r"mcp_gateway": "starts E2B's gateway of MCP servers",
    r"filesystem_only|keep_memory_none": "reads the boot ID of the kernel, which is hidden",
    r"connect_normalizes_unset_tokens": "replaces a route that the released SDK does not call",
    r"watch_(iterated|recursive_directory_changes)": "counts a change of mode that is not reported",
    r"write_multiple_files": "writes to `/`, which is read-only",
    r"throws_an_actionable_error": "expects the words with which E2B's proxy ends a stream",
}


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def relay() -> int:
    """Starts a proxy that leads every host to this machine; returns its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def copy(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            target.close()

    def serve(client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(1 << 12)
            if not data:
                return
            head += data
        port = int(head.split()[1].rpartition(b":")[2])
        target = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        threading.Thread(target=copy, args=(client, target), daemon=True).start()
        copy(target, client)

    def accept() -> None:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listener.getsockname()[1])


@contextmanager
def server(program: Path, folder: Path) -> Iterator[dict[str, str]]:
    """Starts a server that has one key; returns the variables of its clients."""
    domain = f"{DOMAIN}:{free_port()}"
    config = folder / "cellblock.yaml"
    config.write_text(
        "limits: {max_network: loopback}\n"
        f'dialects: {{e2b: {{domain: "{domain}", tls: local, builds: {{}}}}}}\n'
    )
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
    authority = Path(os.environ["CELLBLOCK_HOME"], "authorities", DOMAIN)
    resolve = folder / "resolve.mjs"
    resolve.write_text(RESOLVE)
    try:
        assert process.stdout is not None
        first = process.stdout.readline().strip()
        if not first.startswith("listening on "):
            raise SystemExit(f"the server did not start: `{first}`")
        certificate = str(authority.resolve() / "authority.pem")
        yield {
            "E2B_DOMAIN": domain,
            "E2B_API_KEY": key,
            "HTTPS_PROXY": f"http://127.0.0.1:{relay()}",
            "SSL_CERT_FILE": certificate,
            "NODE_EXTRA_CA_CERTS": certificate,
            "NODE_OPTIONS": f"--import {resolve.as_uri()}",
        }
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(authority, ignore_errors=True)


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
    run(npm, packages, dict(os.environ))
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


def reason(name: str) -> str | None:
    """Why a test cannot pass here, if it cannot."""
    # Names are phrases in JavaScript.
    name = f"{name} {re.sub('[ -]', '_', name)}"
    lacking = LACKING.items()
    return next(
        (why for pattern, why in lacking if re.search(pattern, name, re.IGNORECASE)),
        None,
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
        with server(given.program.resolve(), Path(state)) as variables:
            suite = SUITES[given.language]
            env = {**os.environ, **variables}
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
        elif ("failure" in found or "error" in found) and (why := reason(name)):
            numbers["skipped"] += 1
            skips[name] = why
        elif "failure" in found or "error" in found:
            numbers["errors" if "error" in found else "failed"] += 1
            child = found.get("failure", found.get("error"))
            print(
                f"failed: {name}: {child.get('message') if child is not None else ''}",
                file=sys.stderr,
            )
        else:
            numbers["passed"] += 1
    print(json.dumps({**numbers, "skips": skips}))
    return 1 if numbers["failed"] or numbers["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
