"""Properties of the time-series helpers, against references that use no pandas.

`crates/interpreter/tests/it/timeseries.rs` runs each of them in a sandbox of the default image. To run them by hand, put this
folder, `crates/guest/python` and hypothesis on the path of an image's Python, and call what is in `PROPERTIES`.
"""

import json
import math
import pickle
from collections import defaultdict
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from zoneinfo import ZoneInfo

import pandas as pd
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cellblock_kernel.library import findings
from cellblock_kernel.timeseries import align_timeseries, derive_change_series, safe_merge_timeseries

START = datetime(2024, 1, 1, tzinfo=UTC)
# A plain week, and days before some zone of the list sets its clocks.
STARTS = [START, *(datetime(2024, *day, tzinfo=UTC) for day in ((3, 8), (3, 29), (4, 4), (10, 4), (10, 25), (11, 1)))]
ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/Havana"]
POLICIES = ["last", "first", "sum", "mean", "max", "min"]
CHANGES = ["total_change", "stable_entities_change", "coverage_change"]

bounded = settings(max_examples=40, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
whole = st.integers(-(10**9), 10**9)
broken = st.floats(-1e12, 1e12, allow_nan=False)
absent = st.sampled_from([None, math.nan, math.inf, -math.inf])


@st.composite
def populations(draw, values=whole | broken):
    """A list of rows, one per period, of one level or nothing per entity: whole spells of presence and of absence."""
    periods, entities = draw(st.integers(0, 9)), draw(st.integers(1, 5))
    rows = [[None] * entities for _ in range(periods)]
    for entity in range(entities):
        period = 0
        while period < periods:
            present, length = draw(st.booleans()), draw(st.integers(1, 4))
            for number in range(period, min(period + length, periods)):
                rows[number][entity] = draw(values) if present else draw(absent)
            period += length
    return rows


def observed(level):
    """Whether a value counts as one."""
    return level is not None and math.isfinite(level)


def wide(rows):
    """A column per entity."""
    table = pd.DataFrame(rows, columns=[f"e{number}" for number in range(len(rows[0]) if rows else 1)], dtype="float64")
    table.insert(0, "day", [START + timedelta(days=number) for number in range(len(rows))])
    return table


def long(rows):
    """A row per entity and period."""
    return [
        {"day": (START + timedelta(days=number)).isoformat(), "entity": f"e{entity}", "level": level}
        for number, row in enumerate(rows)
        for entity, level in enumerate(row)
    ]


def reference(rows):
    """Exact sums of what each column is said to mean, period by period."""
    before = None
    for row in rows:
        levels = {entity: Fraction(level) for entity, level in enumerate(row) if observed(level)}
        old = levels if before is None else before
        stayed, came, went = levels.keys() & old.keys(), levels.keys() - old.keys(), old.keys() - levels.keys()
        yield {
            "total_value": sum(levels.values()) if levels else None,
            "stable_entities_change": sum(levels[one] - old[one] for one in stayed),
            "coverage_change": sum(levels[one] for one in came) - sum(old[one] for one in went),
            "entering_entity_count": len(came),
            "exiting_entity_count": len(went),
            "scale": sum(map(abs, levels.values())) + sum(map(abs, old.values())),
        }
        before = levels


def the_invariant_holds(result):
    """To the last bit, in every row."""
    assert (result.total_change == result.stable_entities_change + result.coverage_change).all(), result
    assert result[CHANGES].notna().all(axis=None), result


def check(result, rows, exact):
    """Compares with the reference: to the last bit for whole numbers, else to what rounding can explain."""
    the_invariant_holds(result)
    assert len(result) == len(rows)
    for (_, row), expected in zip(result.iterrows(), reference(rows), strict=True):
        allowed = 0 if exact else expected["scale"] * Fraction(1, 10**12)
        if expected["total_value"] is None:
            assert math.isnan(row.total_value)
        else:
            assert abs(Fraction(row.total_value) - expected["total_value"]) <= allowed
        for column in ("stable_entities_change", "coverage_change"):
            assert abs(Fraction(row[column]) - expected[column]) <= allowed, (column, row, expected)
        change = expected["stable_entities_change"] + expected["coverage_change"]
        assert abs(Fraction(row.total_change) - change) <= allowed
        assert row.entering_entity_count == expected["entering_entity_count"]
        assert row.exiting_entity_count == expected["exiting_entity_count"]


@bounded
@given(populations())
def changes_are_those_of_the_reference(rows):
    """Listing, delisting, gaps, nulls, infinities, empty and one-row inputs, wide and long."""
    check(derive_change_series(wide(rows)), rows, exact=False)
    if rows:
        check(derive_change_series(long(rows), entity_col="entity", value_col="level"), rows, exact=False)


@bounded
@given(populations(values=whole))
def whole_numbers_are_exact(rows):
    """Nothing is rounded that need not be, and the naive change is the difference of the totals."""
    result = derive_change_series(wide(rows))
    check(result, rows, exact=True)
    both = result.total_value.notna() & result.total_value.shift().notna()
    assert (result.total_value.diff()[both] == result.total_change[both]).all()


@bounded
@given(populations(values=whole), st.integers(0, 8))
def events_explain_the_change_of_coverage(rows, most):
    """Each event is what its kind says, and together they are the whole of `coverage_change`."""
    result = derive_change_series(wide(rows), max_events=None)
    sums = defaultdict(int)
    for event in result.attrs["coverage_events"]:
        period, entity = pd.Timestamp(event["period"]), int(event["entity"][1:])
        number = (period.to_pydatetime() - START).days
        levels = [row[entity] if observed(row[entity]) else None for row in rows]
        earlier = [one for one in levels[:number] if one is not None]
        later = [one for one in levels[number:] if one is not None]
        kinds = {True: "resumed" if earlier else "entered", False: "gap" if later else "exited"}
        assert event["kind"] == kinds[levels[number] is not None]
        assert event["previous_value"] == (earlier[-1] if earlier else None)
        assert event["next_value"] == (later[0] if later else None)
        assert abs(event["change"]) == abs(event["value"])
        sums[period] += event["change"]
    assert [sums[period] for period in result.index] == result.coverage_change.tolist()
    counts = result.attrs["coverage_event_count"]
    assert counts["entered"] + counts["resumed"] == result.entering_entity_count.sum()
    assert counts["exited"] + counts["gap"] == result.exiting_entity_count.sum()
    few = derive_change_series(wide(rows), max_events=most)
    kept, every = few.attrs["coverage_events"], result.attrs["coverage_events"]
    sizes = sorted((abs(one["change"]) for one in every), reverse=True)
    assert sorted((abs(one["change"]) for one in kept), reverse=True) == sizes[:most]
    assert [one for one in every if one in kept] == kept and few.attrs["coverage_event_count"] == counts


@bounded
@given(populations(values=whole), st.integers(1, 6), st.randoms(use_true_random=False))
def what_is_displayed_changes_no_total(rows, count, order):
    """Top-N and named subsets add a column and leave the others alone; the order of entities means nothing."""
    table = wide(rows)
    plain = derive_change_series(table)
    entities = list(table.columns[1:])
    some = order.sample(entities, order.randint(0, len(entities)))
    for selected in (count, some, entities):
        result = derive_change_series(table, selected=selected)
        pd.testing.assert_frame_equal(result.drop(columns="selected_entities_change"), plain)
    assert (result.selected_entities_change == plain.stable_entities_change).all()
    order.shuffle(entities)
    pd.testing.assert_frame_equal(derive_change_series(table[["day", *entities]]), plain)


@st.composite
def samples(draw):
    """Rows of several entities at odd moments of a few days, in any order, many of them nulls or in the same bucket."""
    count, start = draw(st.integers(0, 25)), draw(st.sampled_from(STARTS))
    return [
        {
            "at": start + timedelta(seconds=draw(st.integers(0, 5 * 86_400))),
            "entity": draw(st.sampled_from(["a", "b", "c"])),
            "level": draw(st.none() | whole),
        }
        for _ in range(count)
    ]


# New York shows the last two as half past one, Havana the first two as half past midnight.
REPEATED_HOUR = [{"at": datetime(2024, 11, 3, hour, 30, tzinfo=UTC), "entity": "a", "level": hour} for hour in (4, 5, 6)]


def floored(at, freq, zone):
    """The beginning of the bucket by the clock of a zone; a day or month begins with the first of two equal hours."""
    local = at.astimezone(zone)
    if freq == "h":
        return local.replace(minute=0, second=0, microsecond=0).astimezone(UTC)
    begin = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0, **({"day": 1} if freq == "M" else {}))
    return begin.astimezone(UTC)


def fold(values, policy):
    """One value of several in order of time; nulls are none."""
    told = [one for one in values if one is not None]
    if not told:
        return None
    pick = {
        "last": lambda: told[-1],
        "first": lambda: told[0],
        "sum": lambda: sum(told),
        "max": lambda: max(told),
        "min": lambda: min(told),
    }
    return pick[policy]() if policy in pick else sum(told) / len(told)


@bounded
@given(samples(), st.sampled_from(POLICIES), st.sampled_from(["h", "D", "M"]), st.sampled_from(ZONES))
@example(REPEATED_HOUR, "last", "h", "America/New_York")
@example(REPEATED_HOUR, "sum", "D", "America/Havana")
def duplicates_are_folded_by_the_policy_before_anything_is_compared(rows, policy, freq, zone):
    """Long rows with repeated buckets equal the table that the reference folds by hand."""
    cells = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["at"]):
        cells[floored(row["at"], freq, ZoneInfo(zone)), row["entity"]].append(row["level"])
    buckets = sorted({bucket for bucket, _ in cells})
    entities = sorted({entity for _, entity in cells})
    folded = [[fold(cells.get((bucket, entity), []), policy) for entity in entities] for bucket in buckets]
    result = derive_change_series(rows, entity_col="entity", value_col="level", freq=freq, tz=zone, duplicates=policy)
    # Compared in UTC: Python holds a time that a clock shows twice to be equal to none of another zone.
    assert [one.to_pydatetime() for one in result.index.tz_convert("UTC")] == buckets
    check(result, folded, exact=policy != "mean")
    if rows:
        table = pd.DataFrame(rows).pivot_table(index="at", columns="entity", values="level", aggfunc="last", dropna=False)
        if table.shape[1] and not pd.DataFrame(rows).duplicated(["at", "entity"]).any():
            same = derive_change_series(table.astype("float64"), freq=freq, tz=zone, duplicates=policy)
            pd.testing.assert_frame_equal(same, result, check_names=False)


def spelled(at, how):
    """A time in one of the spellings."""
    micros = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return {
        "s": micros // 10**6,
        "ms": micros // 10**3,
        "us": micros,
        "ns": micros * 10**3,
        "text": str(micros // 10**6),
        "iso": at.isoformat(),
        "naive": at.replace(tzinfo=None).isoformat(sep=" "),
        "east": at.astimezone(timezone(timedelta(hours=5, minutes=45))).isoformat(),
        "aware": at.astimezone(ZoneInfo("America/New_York")),
    }[how]


SPELLINGS = ["s", "ms", "us", "ns", "text", "iso", "naive", "east", "aware"]


@bounded
@given(samples(), st.lists(st.sampled_from(SPELLINGS), min_size=25, max_size=25), st.sampled_from(["h", "D"]))
def a_time_is_the_same_however_it_is_spelled(rows, how, freq):
    """Mixed zones, epochs and text in one column give what plain UTC gives."""
    options = {"time_col": "at", "entity_col": "entity", "value_col": "level", "freq": freq}
    mixed = [{**row, "at": spelled(row["at"], one)} for row, one in zip(rows, how, strict=False)]
    pd.testing.assert_frame_equal(derive_change_series(mixed, **options), derive_change_series(rows, **options))


@bounded
@given(
    st.lists(samples(), min_size=1, max_size=3),
    st.sampled_from(["last", "sum", "max"]),
    st.sampled_from(["outer", "inner", "left"]),
    st.randoms(use_true_random=False),
)
def a_merge_keeps_every_sample_and_every_name(sources, policy, how, order):
    """Every column of every source stands under its prefix, and under its own name where no other source has it."""
    names = [f"s{number}" for number in range(len(sources))]
    tables, folded, columns = [], [], []
    for rows in sources:
        column = order.choice(["v", "w", "x"])
        cells = defaultdict(list)
        for row in sorted(rows, key=lambda row: row["at"]):
            cells[floored(row["at"], "D", UTC)].append(row["level"])
        tables.append([{"at": row["at"].isoformat(), column: row["level"]} for row in rows])
        folded.append({bucket: fold(values, policy) for bucket, values in cells.items()})
        columns.append(column if rows else None)
    for given_as in (tables, dict(zip(names, tables, strict=True))):
        # One list of rows, or none, alone is no list of sources.
        named = {} if isinstance(given_as, dict) else {"names": names}
        if isinstance(given_as, dict) and not any(tables):
            continue
        merged = safe_merge_timeseries(
            *([given_as] if isinstance(given_as, dict) else given_as), **named, freq="D", how=how, duplicates=policy, time_col="at"
        )
        buckets = [set(one) for one in folded]
        union = {"outer": set().union(*buckets), "inner": set.intersection(*buckets), "left": buckets[0]}[how]
        assert [one.to_pydatetime() for one in merged.index] == sorted(union)
        expected = {}
        for name, column, one in zip(names, columns, folded, strict=True):
            if column is not None:
                expected[f"{name}_{column}"] = one
        for column, one in zip(columns, folded, strict=True):
            if column is not None and columns.count(column) == 1:
                expected[column] = one
        assert set(merged.columns) == set(expected)
        for column, one in expected.items():
            got = [None if pd.isna(value) else value for value in merged[column]]
            assert got == [one.get(bucket) for bucket in sorted(union)], column


@bounded
@given(st.dictionaries(st.sampled_from("pqr"), samples(), min_size=2))
def aligned_sources_share_one_index_and_gain_nothing(sources):
    """The same keys come back, on one index, with the same samples and nothing in the gaps."""
    tables = {name: [{"at": row["at"].isoformat(), "v": row["level"]} for row in rows] for name, rows in sources.items()}
    if not any(tables.values()):
        return
    aligned = align_timeseries(tables, freq="h", duplicates="sum", time_col="at")
    assert list(aligned) == list(tables)
    first = next(iter(aligned.values())).index
    assert first.is_unique and first.is_monotonic_increasing
    for name, rows in sources.items():
        cells = defaultdict(list)
        for row in rows:
            cells[floored(row["at"], "h", UTC)].append(row["level"])
        told = {bucket: fold(values, "sum") for bucket, values in cells.items()}
        assert aligned[name].index.equals(first) and set(told) <= {one.to_pydatetime() for one in first}
        if rows:
            kept = aligned[name]["v"].dropna()
            assert dict(zip((one.to_pydatetime() for one in kept.index), kept, strict=True)) == {
                bucket: value for bucket, value in told.items() if value is not None
            }


@bounded
@given(populations())
def diagnostics_travel_and_disturb_nothing(rows):
    """What is noted is JSON, reaches the findings, survives pickling, and lets the frame be compared and joined."""
    findings.take()
    result = derive_change_series(wide(rows))
    noted = json.loads(json.dumps(result.attrs, allow_nan=False))
    assert noted == result.attrs
    assert findings.take() == result.attrs["data_quality"]
    assert pickle.loads(pickle.dumps(result)).attrs == result.attrs == result.copy().attrs
    assert len(pd.concat([result, result])) == 2 * len(rows)
    assert (result == result).shape == result.shape


PROPERTIES = [
    changes_are_those_of_the_reference,
    whole_numbers_are_exact,
    events_explain_the_change_of_coverage,
    what_is_displayed_changes_no_total,
    duplicates_are_folded_by_the_policy_before_anything_is_compared,
    a_time_is_the_same_however_it_is_spelled,
    a_merge_keeps_every_sample_and_every_name,
    aligned_sources_share_one_index_and_gain_nothing,
    diagnostics_travel_and_disturb_nothing,
]
