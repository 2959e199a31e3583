"""What the tests of time series share."""

import unittest

from cellblock_kernel.library import findings
from tests.needs import needs as needs

DAYS = ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-06"]
FLOWS = ["total_value", "total_change", "stable_entities_change", "coverage_change"]


def day(number):
    """The epoch in seconds of the n-th of January 2024."""
    return 1_704_067_200 + (number - 1) * 86_400


class SeriesTest(unittest.TestCase):
    def setUp(self):
        findings.take()

    def noted(self, frame, code):
        """The one diagnostic of a code; it must have been reported with the execution as well."""
        found = [one for one in frame.attrs["data_quality"] if one["code"] == code]
        self.assertEqual(len(found), 1, frame.attrs["data_quality"])
        self.assertIn(found[0], findings.take())
        return found[0]

    def codes(self, frame):
        return [one["code"] for one in frame.attrs["data_quality"]]

    def holds(self, frame):
        """The invariant, to the last bit."""
        self.assertTrue((frame.total_change == frame.stable_entities_change + frame.coverage_change).all(), frame)

    def refused(self, kind, message, call, *given, **options):
        findings.take()
        with self.assertRaises(kind) as caught:
            call(*given, **options)
        self.assertEqual(str(caught.exception), message)
        self.assertEqual(findings.take(), [])
