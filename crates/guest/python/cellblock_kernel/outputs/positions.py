"""Positions along an axis as what the picture shows there: dates, periods, names or numbers.

Dates have one spelling, whichever library drew them: `2024-01-31` where all are midnights, `2024-01-31T12:00:00` otherwise. Months,
quarters and years are written as pandas writes them (`2024-01`, `2024Q1`, `2024`), weeks as their last day.
"""

from __future__ import annotations

import sys
from typing import Any

from cellblock_kernel.cell.pattern import pattern

Values = list[Any]

_MOMENT = pattern(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2})(:\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")
_UTC = ("Z", "+00:00", "+0000")
_WHOLE = ("M", "Q", "Y", "A")


def shown(axis: Any, values: Values, near: bool = False) -> Values:
    """Returns numbers on a date axis as dates, and on an axis of names as names.

    With `near`, numbers may be beside their names, as bars in a group are.
    """
    if not values or not _is_number(values[0]):
        return values
    names = _named_ticks(axis, values, near)
    if names is not None:
        return names
    freq = frequency(axis)
    if freq is not None:
        return [_period(round(float(value)), freq) for value in values]
    if "Date" in converter_name(axis):
        dates: Any = sys.modules["matplotlib.dates"]
        return list(dates.num2date(values))
    places = {place: name for name, place in getattr(axis.units, "_mapping", {}).items()} if axis.units is not None else {}
    if places:
        return [places.get(round(value), value) if near or float(value).is_integer() else value for value in values]
    return values


def _is_number(value: Any) -> bool:
    if getattr(getattr(value, "dtype", None), "kind", "") == "M" or isinstance(value, str):
        return False
    return isinstance(value, (int, float)) or hasattr(value, "item")


def converter_name(axis: Any) -> str:
    """Returns the type of an axis' converter of units."""
    get = getattr(axis, "get_converter", None)
    return type(get() if get else axis.converter).__name__


def frequency(axis: Any) -> Any:
    """Returns the frequency of the periods that pandas numbers on an axis."""
    freq = getattr(axis.axes, "freq", None) if axis is axis.axes.xaxis else None
    if freq is None:
        formatter = axis.get_major_formatter()
        freq = getattr(formatter, "freq", None) if type(formatter).__name__ == "TimeSeries_DateFormatter" else None
    if freq is None and converter_name(axis) == "PeriodConverter":
        freq = getattr(axis, "freq", None)
    return freq


def _period(number: int, freq: Any) -> Any:
    pandas: Any = sys.modules["pandas"]
    period = pandas.Period(ordinal=number, freq=freq)
    if period.freqstr.startswith("W"):
        return period.end_time.date()
    return str(period) if period.freqstr.split("-")[0] in _WHOLE else period.start_time


def _named_ticks(axis: Any, values: Values, near: bool) -> Values | None:
    """Returns the names that code, or pandas, has written at the values."""
    if type(axis.get_major_formatter()).__name__ not in ("FixedFormatter", "FuncFormatter"):
        return None
    if type(axis.get_major_locator()).__name__ != "FixedLocator":
        return None
    formatter = axis.get_major_formatter()
    ticks = sorted((float(tick), str(formatter(tick, number))) for number, tick in enumerate(axis.get_majorticklocs()))
    if not ticks:
        return None
    steps = [right[0] - left[0] for left, right in zip(ticks, ticks[1:])]
    reach = min([*steps, 1.0]) / 2 if near else 1e-6
    found: Values = []
    for value in values:
        place, name = min(ticks, key=lambda tick: abs(tick[0] - float(value)))
        if abs(place - float(value)) > reach or not name:
            return None
        found.append(name)
    return found if len(set(found)) == len(found) or not near else None


def spelled(values: Values) -> Values:
    """Returns values with all dates among them in one spelling."""
    moments = [_moment(value) for value in values]
    if not any(moments):
        return values
    is_daily = all(moment is None or moment[1] in ("", "T00:00:00") for moment in moments)
    return [value if moment is None else moment[0] if is_daily else "".join(moment) for value, moment in zip(values, moments)]


def _moment(value: Any) -> tuple[str, str, str] | None:
    """Returns day, time and zone of a date."""
    if hasattr(value, "isoformat"):
        text = value.isoformat()
    elif isinstance(value, str):
        text = value.strip()
    elif getattr(getattr(value, "dtype", None), "kind", "") == "M":
        text = str(value.astype("datetime64[us]"))
    elif hasattr(value, "start_time"):
        pandas: Any = sys.modules["pandas"]
        return _moment(_period(value.ordinal, value.freq)) if isinstance(value, pandas.Period) else None
    else:
        return None
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    day, minutes, seconds, zone = found.groups()
    if minutes is None:
        return day, "" if isinstance(value, str) else "T00:00:00", ""
    fraction = (seconds or ":00").rstrip("0").rstrip(".") if "." in (seconds or "") else seconds or ":00"
    return day, f"T{minutes}{fraction}", "" if zone is None or zone in _UTC else zone
