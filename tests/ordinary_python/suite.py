"""Runs parts of other people's test suites inside a sandbox, and writes down what became of every test that did not simply pass.

A cell defines the names; later cells call `cpython` and `packages`. Each module runs in a process of its own, as its authors run it, so that one
that crashes takes nothing else with it, and `results` knows which did.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

UNITTEST = r"""
import json, os, sys, unittest, warnings
from test import support

warnings.simplefilter("ignore")
support.verbose = False
support.use_resources = {name: None for name in os.environ["RESOURCES"].split(",") if name}


class Report(unittest.TextTestResult):
    def startTestRun(self):
        self.passed, self.ended = 0, []

    def note(self, test, how, why):
        self.ended.append([test.id(), how, str(why)[-600:]])

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.passed += 1

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "failed", "unexpected success")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note(test, "failed", self.failures[-1][1])

    def addError(self, test, error):
        super().addError(test, error)
        self.note(test, "failed", self.errors[-1][1])

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.note(test, "failed", self._exc_info_to_string(error, subtest))


name, report = sys.argv[1:]
sys.argv[1:] = []
suite = unittest.defaultTestLoader.loadTestsFromName(name)
result = unittest.TextTestRunner(resultclass=Report, verbosity=0).run(suite)
with open(report, "w") as file:
    json.dump({"run": result.testsRun, "passed": result.passed, "ended": result.ended}, file)
os._exit(0)
"""
