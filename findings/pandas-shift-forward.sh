#!/usr/bin/env bash
# pandas 3.1.1: `tz_localize(…, nonexistent="shift_forward")` misses the end of a gap that is not an hour, or near UTC.
#
# Documentation: "shift_forward" shifts the nonexistent time forward to the closest existing time.
# Seen, for a time in each gap of 2020 (expected → returned):
#   Australia/Lord_Howe  02:10 in the gap 02:00-02:30: 02:30+11:00 → 03:00+11:00, 30 minutes late
#   Pacific/Chatham      03:00 in the gap 02:45-03:45: 03:45+13:45 → 04:00+13:45, 15 minutes late
#   Antarctica/Troll     01:30 in the gap 01:00-03:00: 03:00+02:00 → 00:00+00:00, an hour before the gap begins
#   Europe/Berlin        02:10 in the gap 02:00-03:00: 03:00+02:00, as documented
# Workaround: localize with nonexistent="NaT", and look for the change of the offset in between.
# Exits with 0 while pandas behaves like this, else with 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if command -v uv >/dev/null; then
  uv venv --quiet "$folder/venv"
  uv pip install --quiet --python "$folder/venv/bin/python" pandas==3.1.1 tzdata==2026.2
else
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --quiet pandas==3.1.1 tzdata==2026.2
fi
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import pandas as pd

seen = {}
for zone, text in (
    ("Australia/Lord_Howe", "2020-10-04 02:10"),
    ("Pacific/Chatham", "2020-09-27 03:00"),
    ("Antarctica/Troll", "2020-03-29 01:30"),
    ("Europe/Berlin", "2020-03-29 02:10"),
):
    seen[zone] = str(pd.Timestamp(text).tz_localize(zone, nonexistent="shift_forward"))
    print(zone, text, "->", seen[zone])
expected = {
    "Australia/Lord_Howe": "2020-10-04 03:00:00+11:00",
    "Pacific/Chatham": "2020-09-27 04:00:00+13:45",
    "Antarctica/Troll": "2020-03-29 00:00:00+00:00",
    "Europe/Berlin": "2020-03-29 03:00:00+02:00",
}
sys.exit(0 if seen == expected else 1)
PYTHON
