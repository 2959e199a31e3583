"""Runs one suite of tests in a process of its own, and writes down how each test ended.

Called as `worker.py unittest|pytest REPORT TARGET ARGUMENT…`. Targets of unittest are dotted names with commas between, that of pytest is a module;
the arguments of pytest go to pytest, those of unittest are the resources that CPython's tests may use.
The report is JSON: how many tests ran and passed, and `[id, "failed" | "skipped", why]` for all others.
"""

import importlib.util
import json
import os
import sys
import unittest
import warnings
from pathlib import Path

ended: list[tuple[str, str, str]] = []


def note(test: str, how: str, why: object) -> None:
    """Remembers a test that did not pass; the end of a traceback says most."""
    ended.append((test, how, str(why).strip()[-500:]))


class Result(unittest.TestResult):
    """Counts what passes. Failed subtests count under the test that they are in."""

    passed = 0

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.passed += 1

    def addExpectedFailure(self, test: unittest.TestCase, err: object) -> None:
        self.passed += 1

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        note(test.id(), "failed", "passed although its authors expect a failure")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        note(test.id(), "skipped", reason)

    def addFailure(self, test: unittest.TestCase, err: object) -> None:
        note(test.id(), "failed", self._exc_info_to_string(err, test))

    addError = addFailure

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: object) -> None:
        if err is not None:
            note(test.id(), "failed", f"{subtest.id()}: {self._exc_info_to_string(err, test)}")


def run_unittest(target: str, resources: list[str]) -> tuple[int, int]:
    """Runs a module, class or method of CPython's own tests."""
    from test import support

    support.use_resources = dict.fromkeys(resources)
    warnings.simplefilter("ignore")
    suite = unittest.defaultTestLoader.loadTestsFromNames(target.split(","))
    result = Result()
    with warnings.catch_warnings():
        suite.run(result)
    return result.testsRun, result.passed


def run_pytest(target: str, arguments: list[str]) -> tuple[int, int]:
    """Runs a test module of an installed package."""
    import pytest

    passed: list[str] = []

    class Plugin:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            test = f"{target}::{report.nodeid.partition('::')[2]}"
            if report.failed:
                note(test, "failed", report.longreprtext)
            elif report.skipped and not hasattr(report, "wasxfail"):
                note(test, "skipped", report.longrepr)
            elif report.when == "call" or report.skipped:
                passed.append(test)

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if not report.passed:
                note(target, "failed" if report.failed else "skipped", report.longreprtext)

    found = importlib.util.find_spec(target)
    if found is None or found.origin is None:
        raise SystemExit(f"there is no module {target}")
    # From the directory that holds the package, so that its own fixtures are found.
    root = Path(found.origin).parents[target.count(".")]
    pytest.main(["-p", "no:cacheprovider", "-q", "--no-header", f"--rootdir={root}", found.origin, *arguments], plugins=[Plugin()])
    tests = {test for test, _, _ in ended} | set(passed)
    return len(tests), len(set(passed) - {test for test, how, _ in ended if how == "failed"})


def main() -> None:
    kind, report, target, *arguments = sys.argv[1:]
    # Some tests look at their arguments.
    del sys.argv[1:]
    run, passed = (run_pytest if kind == "pytest" else run_unittest)(target, arguments)
    with open(report, "w") as file:
        json.dump({"target": target, "run": run, "passed": passed, "ended": ended}, file)
    # A thread that a test left behind must not hold up the others.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
