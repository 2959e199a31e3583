#!/usr/bin/env bash
# DuckDB 2.0.0: values that change, without an error, when a result leaves as Arrow data.
#
#   UHUGEINT from 2^127 on   becomes decimal128(38, 0) with a negative value
#   TIME WITH TIME ZONE      becomes time64[us] without its zone, and without a conversion to UTC
#   INTERVAL of a month      is a month as Arrow data, but 30 days in `.fetchall()` and in `.df()`
# The same values leave `.fetchall()` whole (except the month).
# Workaround: cast to VARCHAR before the result leaves.
# Exits with 0 while DuckDB behaves like this, else with 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
packages=(duckdb==2.0.0 pyarrow==26.0.1 pandas==3.1.1)
if command -v uv >/dev/null; then
  uv venv --quiet "$folder/venv"
  uv pip install --quiet --python "$folder/venv/bin/python" "${packages[@]}"
else
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --quiet "${packages[@]}"
fi
"$folder/venv/bin/python" - <<'PYTHON'
import datetime
import sys

import duckdb

seen = {}
for column in (f"{2**127}::uhugeint", "'10:00:00+02'::timetz", "interval 1 month"):
    relation = duckdb.sql(f"select {column} as x")
    table = relation.to_arrow_table()
    seen[column] = (str(table.column(0).type), table.column(0).to_pylist()[0], relation.fetchall()[0][0])
    print(column, "->", *seen[column], sep=" | ")
number, time, month = seen.values()
same = (
    int(number[1]) == -(2**127) and number[2] == 2**127
    and time[1] == datetime.time(10) and time[2].utcoffset() == datetime.timedelta(hours=2)
    and month[1].months == 1 and month[2] == datetime.timedelta(days=30)
)
sys.exit(0 if same else 1)
PYTHON
