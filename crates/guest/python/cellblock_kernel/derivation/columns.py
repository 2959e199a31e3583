"""What kinds of values the columns of a chart's rows have, for the host that checks its specification."""

import datetime
import re
from typing import Any

_DATE = re.compile(r"\d{4}-\d{2}(-\d{2})?([T ]\d{2}:\d{2}|$)")


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The number of rows, and of each key the kind of its values and how many are null."""
    seen: dict[str, set[str]] = {}
    nulls: dict[str, int] = {}
    for row in rows:
        for key, value in row.items():
            if value is None:
                nulls[key] = nulls.get(key, 0) + 1
                seen.setdefault(key, set())
            else:
                seen.setdefault(key, set()).add(_kind(value))
    present = {key: sum(1 for row in rows if key in row) for key in seen}
    keys = {key: {"kind": _joined(kinds), "nulls": nulls.get(key, 0) + len(rows) - present[key]} for key, kinds in seen.items()}
    return {"rows": len(rows), "keys": keys}


def _joined(kinds: set[str]) -> str:
    if not kinds:
        return "null"
    if len(kinds) == 1:
        return next(iter(kinds))
    return "text" if kinds == {"text", "time"} else "mixed"


def _kind(value: Any) -> str:
    if isinstance(value, int | float):
        return "number"
    return "time" if _is_time(value) else "text"


def _is_time(text: str) -> bool:
    if not _DATE.match(text):
        return False
    try:
        datetime.datetime.fromisoformat(text if len(text) > 7 else f"{text}-01")
    except ValueError:
        return False
    return True
