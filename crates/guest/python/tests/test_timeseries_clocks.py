"""Buckets where clocks are changed: what flows in a bucket is what flows in the time that it covers."""

import importlib.util
import zoneinfo
from datetime import UTC, datetime, timedelta

from tests.series import SeriesTest, needs

if importlib.util.find_spec("pandas"):
    import numpy as np
    import pandas as pd

    from cellblock_kernel.timeseries import align_timeseries, derive_change_series, safe_merge_timeseries

FREQUENCIES = ("15min", "20min", "40min", "1h", "2h", "3h", "6h", "12h", "1D")
SECOND = timedelta(seconds=1)


def changes(zone, first=datetime(2020, 1, 1, tzinfo=UTC), last=datetime(2031, 1, 1, tzinfo=UTC)):
    """The instants at which the offset of a zone changes, with the offsets before and after."""
    at, step = first, timedelta(days=5)
    while at < last:
        before, after = at, at + step
        old, new = before.astimezone(zone).utcoffset(), after.astimezone(zone).utcoffset()
        if old != new:
            while after - before > SECOND:
                middle = before + (after - before) // 2
                middle -= timedelta(microseconds=middle.microsecond)
                if middle.astimezone(zone).utcoffset() == old:
                    before = middle
                else:
                    after = middle
            yield after, old, new
        at += step


def distinct_changes():
    """One change of each kind, by offsets and time of day, from all zones; buckets depend on nothing else."""
    kinds = {}
    for name in sorted(zoneinfo.available_timezones()):
        zone = zoneinfo.ZoneInfo(name)
        for at, old, new in changes(zone):
            shown = (at + old).time()
            kinds.setdefault((old, new, shown), (name, at, new - old))
    return list(kinds.values())


def slope(at, hours=30):
    """A level that rises by 1 an hour, around an instant; some clocks change at a minute past the hour."""
    every = "1min" if at.minute % 5 else "5min"
    start, end = pd.Timestamp(at) - pd.Timedelta(hours=hours), pd.Timestamp(at) + pd.Timedelta(hours=hours)
    times = pd.date_range(start.floor("h"), end.ceil("h"), freq=every, unit="us")
    return pd.DataFrame({"t": times, "level": (times - times[0]) / pd.Timedelta(hours=1)})


@needs("pandas")
class Clocks(SeriesTest):
    def test_a_constant_slope_gives_a_constant_flow_in_every_zone(self):
        kinds = distinct_changes()
        self.assertGreater(len(kinds), 30)
        for name, at, shift in kinds:
            rows = slope(at)
            for freq in FREQUENCIES:
                with self.subTest(name, at=str(at), freq=freq):
                    self.flow_is_constant(rows, freq, name, pd.Timestamp(at), pd.Timedelta(shift))

    def flow_is_constant(self, rows, freq, zone, at, shift):
        changed = derive_change_series(rows, freq=freq, tz=zone)
        self.assertNotIn("missing_periods", self.codes(changed))
        starts, length = changed.index, pd.Timedelta(freq)
        covered = starts[1:] - starts[:-1]
        self.assertTrue((covered > pd.Timedelta(0)).all(), starts)
        # The first and the last bucket are cut off by the data. Each sample stands at the end of its 5 minutes.
        flow = changed.stable_entities_change.to_numpy()[1:-1]
        np.testing.assert_allclose(flow[1:], (covered / pd.Timedelta(hours=1)).to_numpy()[2:], rtol=1e-9)
        uneven = covered[1:] != length
        if shift % length == pd.Timedelta(0):
            self.assertFalse(uneven.any(), covered)
        else:
            self.assertEqual((covered[1:] - length).sum() % length, (-shift) % length)
            near = (starts[1:-1] <= at) & (starts[2:] >= at) | (starts[1:-1] == at)
            self.assertTrue((near | ~uneven).all(), covered)
        # A bucket starts when the clock shows a multiple of its length, or at a change that skipped that time.
        on_grid = starts.tz_localize(None) == starts.tz_localize(None).floor(freq)
        if 86400 % length.total_seconds() == 0:
            self.assertTrue((on_grid | (starts == at)).all(), starts)
        whole = align_timeseries(rows.iloc[[0, -1]], freq=freq, whole=True, tz=zone)
        self.assertEqual(list(whole.index), list(starts))
        if freq == "2h":
            merged = safe_merge_timeseries({"a": rows, "b": rows.iloc[::-1]}, freq=freq, tz=zone)
            self.assertEqual((list(merged.index), (merged.a_level == merged.b_level).all()), (list(starts), True))

    def test_buckets_longer_than_the_change_cover_it_as_days_do(self):
        night = pd.DataFrame({"t": pd.date_range("2024-10-26T20:00Z", periods=10, freq="h"), "level": range(10)})
        changed = derive_change_series(night, freq="2h", tz="Europe/Berlin")
        self.assertEqual([str(one)[11:] for one in changed.index[1:4]], ["00:00:00+02:00", "02:00:00+02:00", "04:00:00+01:00"])
        self.assertEqual(changed.stable_entities_change.tolist(), [0, 2, 3, 2, 1])
        hours = derive_change_series(night, freq="h", tz="Europe/Berlin")
        self.assertEqual(hours.stable_entities_change.tolist(), [0] + [1] * 9)

        night = pd.DataFrame({"t": pd.date_range("2024-03-30T23:00Z", periods=6, freq="h"), "level": range(6)})
        changed = derive_change_series(night, freq="2h", tz="Europe/Berlin")
        self.assertEqual(
            [str(one)[11:] for one in changed.index],
            [f"{hour}:00:00+0{zone}:00" for hour, zone in (("00", 1), ("03", 2), ("04", 2), ("06", 2))],
        )
        self.assertEqual(changed.stable_entities_change.tolist(), [0, 1, 2, 1])

    def test_a_gap_at_a_change_is_counted_in_buckets(self):
        night = pd.DataFrame({"t": pd.date_range("2024-10-26T22:00Z", periods=9, freq="h"), "level": range(9)})
        for freq, kept, count in (("2h", [0, 1, 6, 7], 1), ("1h", [0, 1, 4, 5], 2), ("6h", [0, 8], 0)):
            changed = derive_change_series(night.iloc[kept], freq=freq, tz="Europe/Berlin")
            missing = [one["details"]["count"] for one in changed.attrs["data_quality"] if one["code"] == "missing_periods"]
            self.assertEqual(missing, [count] if count else [], freq)


@needs("pandas")
class Midnights(SeriesTest):
    def joined(self, times, tz="UTC", **options):
        """Merges a daily series with one of plain dates, and returns the rows with their days."""
        mine = pd.DataFrame({"t": times, "v": range(len(times))})
        dates = pd.DataFrame({"date": [f"2024-03-{number:02}" for number in range(29, 32)], "w": range(3)})
        merged = safe_merge_timeseries(mine, dates, time_col=["t", "date"], tz=tz, **options)
        return merged, [(str(at)[:10], *row) for at, row in zip(merged.index, merged[["v", "w"]].to_numpy().tolist(), strict=True)]

    def test_midnights_of_a_zone_are_joined_with_plain_dates(self):
        # Berlin's clocks change on the 31st.
        days = pd.date_range("2024-03-29", periods=3, tz="Europe/Berlin", unit="us")
        expected = [("2024-03-29", 0, 0), ("2024-03-30", 1, 1), ("2024-03-31", 2, 2)]
        for name, times, zone in (
            ("dtype", days, "Europe/Berlin"),
            ("objects", [one.to_pydatetime() for one in days], "Europe/Berlin"),
            ("text", [one.isoformat() for one in days], "+01:00"),
            ("categories", pd.Categorical([one.isoformat() for one in days]), "+01:00"),
        ):
            for options in ({}, {"freq": "D"}):
                with self.subTest(name, **options):
                    merged, found = self.joined(times, **options)
                    self.assertEqual(found, expected)
                    note = self.noted(merged, "midnights_of_another_zone")
                    self.assertEqual(note["details"], {"zone": zone, "moved": 3, "taken_as_dates": True})
                    self.assertNotIn("buckets_inferred", self.codes(merged))
        self.assertEqual(
            note["message"],
            "source 1: 3 times are all midnights of +01:00, so they were taken as dates; as instants, 3 of them would fall on "
            "another day in UTC",
        )

    def test_dates_stay_on_their_day_in_a_zone_west_of_utc(self):
        days = pd.date_range("2024-03-29", periods=3, tz="America/New_York", unit="us")
        merged, found = self.joined(days, tz="America/New_York")
        self.assertEqual(found, [("2024-03-29", 0, 0), ("2024-03-30", 1, 1), ("2024-03-31", 2, 2)])
        note = self.noted(merged, "midnights_of_another_zone")
        self.assertEqual(note["series"], "source 2")
        self.assertEqual(note["details"], {"zone": None, "moved": 3, "taken_as_dates": True})
        changed = derive_change_series(
            [{"date": one, "a": 1} for one in ("2024-03-01", "2024-03-02")], freq="D", tz="America/New_York"
        )
        self.assertEqual([str(one) for one in changed.index], ["2024-03-01 00:00:00-05:00", "2024-03-02 00:00:00-05:00"])

    def test_midnights_in_utc_stay_instants_with_a_note(self):
        days = pd.date_range("2024-03-29", periods=3, tz="UTC", unit="us")
        for times in (days, days.tz_localize(None).astype("int64") // 10**6, [f"{str(one)[:10]}T00:00:00Z" for one in days]):
            merged, found = self.joined(times, tz="America/New_York", freq="D")
            self.assertEqual(found[0][:2], ("2024-03-28", 0))
            notes = [one for one in merged.attrs["data_quality"] if one["code"] == "midnights_of_another_zone"]
            self.assertEqual([one["details"]["taken_as_dates"] for one in notes], [False, True])
            self.assertIn('3 of them fall on another day: if they are dates, pass tz="UTC"', notes[0]["message"])

    def test_other_times_are_instants(self):
        days = pd.date_range("2024-03-29", periods=3, tz="Europe/Berlin", unit="us")
        for times, options in (
            (days + pd.Timedelta(minutes=1), {"freq": "D"}),
            (days[:2].append(days[2:] + pd.Timedelta(hours=1)), {"freq": "D"}),
            (days, {"freq": "h"}),
        ):
            merged, found = self.joined(times, **options)
            self.assertEqual(found[0][0], "2024-03-28")
            self.assertNotIn("midnights_of_another_zone", self.codes(merged))
        merged, _ = self.joined(days, tz="Europe/Berlin")
        self.assertNotIn("midnights_of_another_zone", self.codes(merged))
