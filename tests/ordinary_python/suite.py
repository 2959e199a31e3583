"""A cell that defines `run`: it runs suites of tests of other people, and writes down what became of every test that did not simply pass.

The input `worker` is the content of `worker.py`. Each suite runs in a process of its own, as its authors run it, so that one that crashes takes
nothing else with it and is known by its exit status.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WORKER = Path("/workspace/worker.py")
WORKER.write_bytes(worker)  # noqa: F821
RESULTS = Path("/tmp/output/results.json")
# Where requirements are installed.
LAYERS = [path for path in sys.path if path.startswith("/opt/layers/")]
# numpy asks the machine how much memory there is, and would take more than the sandbox may have.
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(LAYERS), "NPY_AVAILABLE_MEM": "512MB"}


def attempt(kind: str, target: str, arguments: list[str]) -> dict:
    """Runs one suite once."""
    folder = Path(tempfile.mkdtemp())
    report, log, work = folder / "report.json", folder / "log", folder / "work"
    work.mkdir()
    command = [sys.executable, WORKER, kind, report, target, *arguments]
    with log.open("w") as output:
        ended = subprocess.run(
            command, check=False, cwd=work, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, timeout=250
        )
    if ended.returncode == 0:
        return json.loads(report.read_text())
    return {"target": target, "crashed": ended.returncode, "log": log.read_text(errors="replace")[-3000:]}


def one(suite: tuple[str, str, list[str]]) -> dict:
    """Runs one suite; what fails gets a second chance, as in CPython's own runs, since tests of time fail on a busy machine."""
    kind, target, arguments = suite
    result = attempt(kind, target, arguments)
    failed = {test for test, how, _ in result.get("ended", []) if how == "failed"}
    if kind == "unittest" and failed and all(test.isidentifier() for name in failed for test in name.split(".")):
        again = attempt(kind, ",".join(sorted(failed)), arguments)
        if "ended" in again:
            still = {test for test, how, _ in again["ended"] if how == "failed"}
            result["ended"] = [entry for entry in result["ended"] if entry[1] != "failed" or entry[0] in still]
            result["passed"] += len(failed - still)
    return result


def run(suites: list[tuple[str, str, list[str]]]) -> None:
    """Runs suites, two at a time, and keeps what came of them."""
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, suites))
    for result in results:
        print(result["target"], result.get("passed", "crashed"), "of", result.get("run"))
    RESULTS.write_text(json.dumps(results))
