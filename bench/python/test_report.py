"""Tests of the report: statistics, ratios, promises, tables and the chart."""

# ruff: noqa: D102

import unittest

from chart import LEFT, RIGHT, position, svg
from report import best_throughput, floors, markdown, promises, row_of, times_better
from rows import ROWS
from samples import Samples, number

CIRCUMSTANCES = {
    "date": "2026-01-01T00:00:00Z",
    "seconds": 9,
    "command": "cargo xtask bench",
    "commit": "0123456789ab+",
    "cpu": "EPYC",
    "cpus": 2,
    "memory_mib": 24105,
    "kernel": "6.18",
    "load": "0.10",
    "image": "0123456789ab",
    "python": "3.13.0",
    "bwrap": None,
    "runsc": "runsc 1",
}


def samples(**values: float) -> Samples:
    """Returns one sample of each series, whose names have two underscores instead of a slash."""
    return Samples({name.replace("__", "/"): [value] for name, value in values.items()})


def row(series: str):
    """Returns a row of the report."""
    return next(it for it in ROWS if it.series == series)


def table(measured: Samples, **parts: object) -> str:
    """Returns the report of these samples."""
    results = {"circumstances": CIRCUMSTANCES, "missing": {}, "failures": [], "samples": measured.values}
    return markdown({**results, **parts})


class Rows(unittest.TestCase):
    """The rows themselves."""

    def test_no_series_has_two_rows(self) -> None:
        self.assertEqual(len({it.series for it in ROWS}), len(ROWS))

    def test_a_promise_that_compares_has_something_to_compare_to(self) -> None:
        for it in ROWS:
            self.assertTrue(it.floors is None or it.floor, it.series)
            self.assertTrue(it.sooner is None or any(peer.startswith("ipykernel/") for peer in it.peers), it.series)

    def test_series_that_have_no_row_have_a_unit(self) -> None:
        units = {
            "cellblock/warm": "ms",
            "python/throughput_2": "/s",
            "cellblock/template_pss_100": "MiB",
            "ipykernel/idle_uss": "KiB",
            "floor/fork_and_reap": "ms",
        }
        for series, unit in units.items():
            self.assertEqual(row_of(series).unit, unit, series)
        self.assertEqual(row_of("floor/stdout").megabytes, 10)


class Judgment(unittest.TestCase):
    """Medians, ratios and promises."""

    def test_quantiles_are_values_that_were_measured(self) -> None:
        measured = Samples({"a/b": [float(it) for it in range(200, 0, -1)], "a/one": [7.0]})
        self.assertEqual([measured.quantile("a/b", it) for it in (0.5, 0.99, 1.0)], [100.0, 198.0, 200.0])
        self.assertEqual(measured.quantile("a/one", 0.99), 7.0)
        self.assertIsNone(measured.median("a/none"))

    def test_a_new_session_is_compared_with_a_fork_and_namespaces_together(self) -> None:
        cold = row("cold_first")
        measured = samples(cellblock__cold_first=16.0, floor__fork=6.5, floor__namespaces=1.5, ipykernel__first=1200.0)
        self.assertEqual(floors(cold, measured), 2.0)
        self.assertEqual(times_better(cold, "ipykernel/first", measured), 75.0)
        self.assertIsNone(times_better(cold, "runsc/first", measured))
        self.assertEqual(list(promises(cold, measured)), [("≤ 15 ms", False), ("≤ 2× the floor", True)])

    def test_half_a_floor_is_not_a_floor(self) -> None:
        measured = samples(cellblock__cold_first=14.0, floor__fork=6.5)
        self.assertIsNone(floors(row("cold_first"), measured))
        self.assertEqual(list(promises(row("cold_first"), measured)), [("≤ 15 ms", True)])

    def test_more_rounds_in_a_second_are_better(self) -> None:
        measured = samples(
            cellblock__throughput_1=60.0, cellblock__throughput_2=90.0, python__throughput_2=45.0, floor__throughput_2=180.0
        )
        two = row("throughput_2")
        self.assertEqual(times_better(two, "python/throughput_2", measured), 2.0)
        self.assertEqual(floors(two, measured), 2.0)
        self.assertEqual(best_throughput(measured), "throughput_2")
        self.assertEqual(list(promises(two, measured)), [("≥ 100 /s at the best", False)])
        self.assertEqual(list(promises(row("throughput_1"), measured)), [])

    def test_a_chart_is_promised_so_many_times_sooner(self) -> None:
        words = "≥ 20× sooner than ipykernel"
        for theirs, kept in [(1590.0, False), (1600.0, True)]:
            measured = samples(cellblock__pool_chart=80.0, ipykernel__chart=theirs)
            self.assertEqual(list(promises(row("pool_chart"), measured)), [(words, kept)])

    def test_a_ratio_to_nothing_is_none(self) -> None:
        self.assertIsNone(times_better(row("warm"), "ipykernel/warm", samples(cellblock__warm=0.0, ipykernel__warm=4.0)))


class Tables(unittest.TestCase):
    """The tables in Markdown."""

    def test_numbers_have_three_digits(self) -> None:
        texts = {0.0123: "0.012", 0.2735: "0.27", 14.913: "14.9", 100.0: "100", 1047.77: "1,048", 123_456.0: "123,456", 2.0: "2"}
        for value, text in texts.items():
            self.assertEqual(number(value), text)

    def test_a_row_names_peers_floor_and_promise_with_their_ratios(self) -> None:
        text = table(samples(cellblock__warm=0.3, ipykernel__warm=4.2, floor__round_trip=0.05))
        self.assertEqual(
            text.splitlines()[2],
            "| warm `1+1` | 0.3 ms | 0.3 ms | 1 | ipykernel 4.2 ms (14×) | 0.05 ms (6×) | ≤ 0.5 ms, ≤ 3× the floor | yes, NO |",
        )
        self.assertIn("\n| floor: round trip | 0.05 ms | 0.05 ms | 1 |\n", text)

    def test_unmeasured_rows_are_left_out_and_missing_ones_named(self) -> None:
        text = table(Samples({}), missing={"runsc": "not found"}, failures=["cellblock, warm: no"])
        self.assertEqual(text.splitlines()[2], "")
        self.assertIn("\n2 CPUs (EPYC), 24105 MiB, Linux 6.18; Python 3.13.0; bwrap: none; runsc: runsc 1; commit", text)
        self.assertTrue(text.endswith("\nMissing: runsc: not found\nFAILED: cellblock, warm: no\n"))


class Chart(unittest.TestCase):
    """The chart as SVG."""

    def test_a_decade_is_as_wide_as_any_other(self) -> None:
        self.assertAlmostEqual(position(1.0) - position(0.1), position(1000.0) - position(100.0))
        self.assertEqual((position(0.0001), position(0.0), position(1e9)), (LEFT, LEFT, RIGHT))

    def test_measured_values_have_a_labeled_bar_and_others_none(self) -> None:
        drawn = svg(samples(cellblock__warm=0.27, ipykernel__warm=4.07, ipykernel__first=1048.0))
        self.assertEqual(drawn.count("<rect "), 2)
        self.assertTrue(">0.27 ms</text>" in drawn and ">4.07 ms</text>" in drawn)
        self.assertNotIn("New session", drawn)

    def test_a_floor_of_two_parts_needs_both(self) -> None:
        measured = samples(cellblock__cold_first=14.9, floor__fork=6.5)
        self.assertEqual(svg(measured).count("<rect "), 1)
        measured.values["floor/namespaces"] = [0.5]
        self.assertIn(">7 ms</text>", svg(measured))


if __name__ == "__main__":
    unittest.main()
