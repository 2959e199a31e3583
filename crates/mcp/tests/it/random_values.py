"""Random values of Python and its data libraries, each beside the JSON that it has to become.

The JSON is put together from the same random parts as the value, never from the value itself. `REFUSED` stands for a value that JSON
cannot hold. `check(first, last)` gives the values of these seeds that have to be accepted, their JSON, and how many of their
numbers become null; those that have to be refused are tried at once.
"""

import dataclasses
import datetime as dt
import decimal
import enum
import math
import pathlib
import random
import uuid

import numpy as np
import pandas as pd
import polars as pl

REFUSED = object()
# One of so many leaves is a value that has to be refused.
RARE = 60
TEXTS = [
    "",
    "a",
    "é",
    "0",
    "1",
    "true",
    "null",
    "x / y",
    '\x00\x1f"\\',
    "\u2028",
    "😀",
    "1.0",
    "2024-01-01",
    "e" * 40,
]


class Color(enum.Enum):
    RED = "red"
    ONE = 1


@dataclasses.dataclass
class Point:
    x: object
    y: object


class Loud(str):
    def __str__(self):
        return "LOUD"


def number(r):
    """A finite number: value and JSON. Floats stay below 2**64, beyond which `record_result` cannot know them from integers."""
    kind = r.randrange(9)
    if kind == 0:
        plain = r.choice([0, 1, -1, 2, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1])
    elif kind < 3:
        plain = r.randrange(-10, 10)
    elif kind == 3:
        plain = r.choice([0.0, -0.0, 1.0, 5e-324, 1e16, 1.8e19, 0.1, 1 / 3])
    elif kind == 4:
        plain = r.uniform(-1, 1) * 10.0 ** r.randrange(-300, 19)
    elif kind == 5:
        small = r.randrange(-100, 100)
        return r.choice([np.int8, np.int64, np.int32])(small), small
    elif kind == 6:
        plain = r.uniform(-5, 5)
        return np.float64(plain), plain
    elif kind == 7:
        cents = r.randrange(-(10**9), 10**9)
        return decimal.Decimal(cents).scaleb(-2), cents / 100
    else:
        half = r.randrange(-50, 50) / 2
        return r.choice([np.float32, np.float16, np.longdouble])(half), half
    return plain, plain


def instant(r):
    """A time: value and ISO text."""
    day, kind = r.randrange(1, 29), r.randrange(6)
    if kind == 0:
        return dt.date(2024, 2, day), f"2024-02-{day:02}"
    if kind == 1:
        return dt.datetime(
            2024, 2, day, 3, 4, 5, 6
        ), f"2024-02-{day:02}T03:04:05.000006"
    if kind == 2:
        return dt.datetime(
            2024, 2, day, tzinfo=dt.UTC
        ), f"2024-02-{day:02}T00:00:00+00:00"
    if kind == 3:
        return pd.Timestamp(
            f"2024-02-{day:02}T01:02:03.000000007"
        ), f"2024-02-{day:02}T01:02:03.000000007"
    if kind == 4:
        return np.datetime64(f"2024-02-{day:02}"), f"2024-02-{day:02}"
    return dt.time(day % 24, 30), f"{day % 24:02}:30:00"


def leaf(r):
    """A scalar: value, JSON, and how many numbers JSON lacks."""
    if r.randrange(RARE) == 0:
        refused = [
            2**64,
            -(2**63) - 1,
            7**200,
            decimal.Decimal(1) / 3,
            decimal.Decimal("1e400"),
            "\ud800",
            b"x",
            1j,
            object(),
            range(3),
        ]
        return (
            r.choice(
                [
                    *refused,
                    np.longdouble(1) / 3,
                    np.timedelta64(3, "M"),
                    pl.Series([1], dtype=pl.Datetime("ns")),
                ]
            ),
            REFUSED,
            0,
        )
    kind = r.randrange(10)
    if kind < 3:
        return *number(r), 0
    if kind == 3:
        text = r.choice(TEXTS)
        return r.choice([text, np.str_(text), Loud(text)]), text, 0
    if kind == 4:
        flag = r.random() < 0.5
        return r.choice([flag, np.bool_(flag)]), flag, 0
    if kind == 5:
        return *instant(r), 0
    if kind == 6:
        return (
            r.choice(
                [
                    math.nan,
                    math.inf,
                    -math.inf,
                    np.float64("nan"),
                    pd.NaT,
                    pd.NA,
                    np.datetime64("NaT"),
                ]
            ),
            None,
            1,
        )
    if kind == 7:
        seconds = r.randrange(-(10**6), 10**6)
        return (
            r.choice([dt.timedelta(seconds=seconds), pd.Timedelta(seconds=seconds)]),
            float(seconds),
            0,
        )
    if kind == 8:
        color = r.choice(list(Color))
        return color, "red" if color is Color.RED else 1, 0
    made = uuid.UUID(int=r.getrandbits(128))
    return r.choice(
        [
            (None, None, 0),
            (made, str(made), 0),
            (pathlib.PurePosixPath("/a/b"), "/a/b", 0),
        ]
    )


def label(r):
    """A key: value and text."""
    kind = r.randrange(9)
    if kind < 3:
        plain = r.choice([0, 1, 2, 3, -7, 10**12])
        return r.choice([plain, plain, np.int64(plain)]), str(plain)
    if kind == 3:
        flag = r.random() < 0.5
        return flag, "true" if flag else "false"
    if kind == 4:
        return r.choice(
            [(0.5, "0.5"), (1.0, "1.0"), (None, "null"), (np.float64(2.5), "2.5")]
        )
    if kind == 5:
        return instant(r)
    if kind == 6 and r.randrange(8) == 0:
        return (1, "a"), REFUSED
    text = r.choice(TEXTS)
    return text, text


def mapping(r, depth):
    value, want, texts, absent = {}, {}, [], 0
    refused = False
    for _ in range(r.randrange(6)):
        key, text = label(r)
        if key in value:
            continue
        value[key], inner, lost = anything(r, depth - 1)
        refused |= text is REFUSED or text in want or inner is REFUSED
        if text is not REFUSED:
            want[text] = inner
        texts.append(text)
        absent += lost
    return value, REFUSED if refused else want, absent


def sequence(r, depth):
    parts = [anything(r, depth - 1) for _ in range(r.randrange(5))]
    want = (
        REFUSED
        if any(part[1] is REFUSED for part in parts)
        else [part[1] for part in parts]
    )
    return (
        r.choice([list, tuple])(part[0] for part in parts),
        want,
        sum(part[2] for part in parts),
    )


def column(r, rows):
    """A column of one dtype: values for pandas, JSON, numbers that JSON lacks."""
    kind = r.randrange(8)
    if kind == 0:
        plain = [r.randrange(-3, 3) for _ in range(rows)]
        return (
            pd.Series(plain, dtype=r.choice(["int64", "int8", "Int64", "category"])),
            plain,
            0,
        )
    if kind == 1:
        plain = [r.choice([r.uniform(-2, 2), None]) for _ in range(rows)]
        return pd.Series(plain, dtype="float64"), plain, plain.count(None)
    if kind == 2:
        plain = [r.random() < 0.5 for _ in range(rows)]
        return pd.Series(plain, dtype="bool"), plain, 0
    if kind == 3:
        plain = [r.choice([1, 0, None]) for _ in range(rows)]
        return pd.Series(plain, dtype="Int64"), plain, plain.count(None)
    if kind == 4:
        days = [r.randrange(1, 29) for _ in range(rows)]
        return (
            pd.Series(pd.to_datetime([f"2024-02-{day:02}" for day in days])),
            [f"2024-02-{day:02}T00:00:00" for day in days],
            0,
        )
    if kind == 5:
        plain = [r.choice(TEXTS) for _ in range(rows)]
        return pd.Series(plain, dtype=r.choice(["str", "object", "category"])), plain, 0
    if kind == 6:
        plain = [r.choice([0, 1, 2**64 - 1]) for _ in range(rows)]
        return pd.Series(plain, dtype="uint64"), plain, 0
    parts = [leaf(r) for _ in range(rows)]
    want = (
        REFUSED
        if any(part[1] is REFUSED for part in parts)
        else [part[1] for part in parts]
    )
    values = pd.Series([part[0] for part in parts], dtype="object")
    return values, want, sum(part[2] for part in parts)


def index(r, rows):
    """An index: for pandas, its texts as keys, its values as a column, whether it only counts."""
    kind = r.randrange(7)
    if kind < 2:
        return pd.RangeIndex(rows), None, None
    if kind == 2:
        years = list(range(2020, 2020 + rows))
        return pd.Index(range(2020, 2020 + rows)), [str(year) for year in years], years
    if kind == 3:
        plain = r.sample(range(rows + 3), rows)
        return pd.Index(plain), [str(one) for one in plain], plain
    if kind == 4:
        plain = [one / 2 for one in r.sample(range(rows + 3), rows)]
        return pd.Index(plain), [str(one) for one in plain], plain
    if kind == 5:
        days = [f"2024-02-{day:02}T00:00:00" for day in r.sample(range(1, 29), rows)]
        return pd.DatetimeIndex(days), days, days
    plain = [f"k{one}" for one in r.sample(range(rows + 3), rows)]
    return pd.Index(plain), plain, plain


def frame(r, rows=None):
    """A data frame of pandas, Polars or pyarrow with columns in random order."""
    rows = r.randrange(5) if rows is None else rows
    texts = {}
    for _ in range(r.randrange(1, 6)):
        key, text = label(r)
        if text is not REFUSED:
            texts.setdefault(key, text)
    texts = texts or {"a": "a"}
    labels, texts = list(texts), list(texts.values())
    columns = [column(r, rows) for _ in labels]
    refused = any(want is REFUSED for _, want, _ in columns)
    absent = sum(lost for *_, lost in columns)
    kind = r.randrange(4)
    if kind == 0:
        texts = r.sample(["b", "a", "10", "9", "z", "é"], len(columns))
        plain = [want for _, want, _ in columns]
        if refused or any(
            not all(type(one) is type(many[0]) for one in many)
            or type(many[0]) is float
            for many in plain
            if many
        ):
            return frame(r, rows)
        if not all(
            type(one) in (int, str, bool) and one not in (2**64 - 1, 2**63)
            for many in plain
            for one in many
        ):
            return frame(r, rows)
        made = pl.DataFrame(dict(zip(texts, plain, strict=True)))
        value = r.choice([made, made.to_arrow()])
        return (
            value,
            [dict(zip(texts, row, strict=True)) for row in zip(*plain, strict=True)],
            0,
        )
    at, _, extra = index(r, rows)
    value = pd.concat([one.set_axis(at) for one, *_ in columns], axis=1)
    value.columns = pd.Index(labels, dtype="object")
    if extra is not None:
        texts.insert(0, "index")
        columns.insert(0, (None, extra, 0))
    if refused or len(set(texts)) < len(texts):
        return value, REFUSED, 0
    return (
        value,
        [
            dict(zip(texts, row, strict=True))
            for row in zip(*(want for _, want, _ in columns), strict=True)
        ],
        absent,
    )


def series(r):
    rows = r.randrange(6)
    values, want, absent = column(r, rows)
    if r.randrange(5) == 0 and rows:
        levels = r.sample(
            [
                (one, two)
                for one in (0, 1, "a", "a / b")
                for two in (0, 2, "c", "b / c")
            ],
            rows,
        )
        texts = [f"{one} / {two}" for one, two in levels]
        if len(set(texts)) < rows:
            want = REFUSED
        return (
            values.set_axis(pd.MultiIndex.from_tuples(levels)),
            REFUSED if want is REFUSED else dict(zip(texts, want, strict=True)),
            absent,
        )
    at, texts, _ = index(r, rows)
    values = values.set_axis(at)
    if want is REFUSED or texts is None:
        return values, want, absent
    return values, dict(zip(texts, want, strict=True)), absent


def anything(r, depth):
    """Any value: value, JSON, numbers that JSON lacks."""
    kind = r.randrange(10)
    if depth == 0 or kind < 3:
        return leaf(r)
    if kind < 5:
        return mapping(r, depth)
    if kind < 7:
        return sequence(r, depth)
    if kind == 7:
        return frame(r)
    if kind == 8:
        return series(r)
    pairs = [anything(r, depth - 1) for _ in range(2)]
    want = (
        REFUSED
        if any(part[1] is REFUSED for part in pairs)
        else {"x": pairs[0][1], "y": pairs[1][1]}
    )
    if r.random() < 0.3:
        members = r.sample(range(100), 4)
        return set(members), sorted(members), 0
    return Point(pairs[0][0], pairs[1][0]), want, pairs[0][2] + pairs[1][2]


def check(first, last, accept):
    """The accepted values of these seeds, their JSON, and the numbers that become null; `accept` is tried with each to be refused."""
    values, wanted, absent, refused = [], [], 0, 0
    for seed in range(first, last):
        value, want, lost = anything(random.Random(seed), 4)
        if want is not REFUSED:
            values.append(value)
            wanted.append(want)
            absent += lost
            continue
        refused += 1
        try:
            accept(value)
        except TypeError as error:
            if not str(error).startswith("result"):
                raise AssertionError(
                    f"seed {seed}: refused without its place: {error}"
                ) from error
        else:
            raise AssertionError(f"seed {seed}: {value!r:.300} was not refused")
    return values, wanted, absent, refused


def chart(seed, form):
    """Data of a chart as `rows`, as `columns` or as a `frame`, its rows, and how many infinite values it has."""
    r = random.Random(seed)
    texts = {"at": "at", 7: "7"}
    for _ in range(8):
        key, text = label(r)
        if (
            text is not REFUSED
            and text
            and text.isprintable()
            and text not in texts.values()
        ):
            texts.setdefault(key, text)
    count, data, want, infinite = 12, [], [], 0
    for number_of_row in range(count):
        values, wanted = (
            [number_of_row, number_of_row / 4],
            [number_of_row, number_of_row / 4],
        )
        while len(values) < len(texts):
            value, plain, lost = leaf(r)
            if plain is REFUSED:
                continue
            values.append(value)
            # A chart draws truth as 1 and 0.
            wanted.append(int(plain) if isinstance(plain, bool) else plain)
            infinite += lost and isinstance(value, float) and math.isinf(value)
        data.append(values)
        want.append(dict(zip(texts.values(), wanted, strict=True)))
    if form == "rows":
        return [dict(zip(texts, row, strict=True)) for row in data], want, infinite
    if form == "columns":
        return (
            {
                key: list(column)
                for key, column in zip(texts, zip(*data, strict=True), strict=True)
            },
            want,
            infinite,
        )
    columns = [
        pd.Series(list(column), dtype="object") for column in zip(*data, strict=True)
    ]
    made = pd.concat(columns, axis=1)
    made.columns = pd.Index(list(texts), dtype="object")
    return made, want, infinite
