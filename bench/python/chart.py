"""The chart of the performance page: medians on a logarithmic scale, readable on a light and on a dark page."""

from __future__ import annotations

import math

from samples import Samples, number

# Colors that have enough contrast on white and on nearly black.
OURS = "#2f81f7"
PEERS = "#8b949e"
TEXT = "#7d8590"

WIDTH = 840
# Position at which bars begin, and the one at which the longest may end.
LEFT, RIGHT = 210, 730
BAR, STEP = 14, 20
# The scale: from 0.01 ms to 10 s.
DECADES = (-2, 4)

PROGRAMS = {
    "python": "python -c, unconfined",
    "bwrap": "bwrap + python",
    "runsc": "runsc do + python",
    "ipykernel": "ipykernel, unconfined",
}


def bars(ours: dict[str, str], peer: str, whos: list[str], floor: tuple[str, ...]) -> list[tuple[str, list[str]]]:
    """Returns the labels and series of a group: of Cellblock, of its peers, and of a floor with its parts."""
    label, *parts = floor
    return [
        *((label, [f"cellblock/{series}"]) for label, series in ours.items()),
        *((PROGRAMS[who], [f"{who}/{peer}"]) for who in whos),
        (label, [f"floor/{part}" for part in parts]),
    ]


POOL, COLD = "Cellblock, from the pool", "Cellblock, no pool"
GROUPS = {
    "New session until the result of 1+1": bars(
        {POOL: "pool_first", COLD: "cold_first"}, "first", [*PROGRAMS], ("bare fork + namespaces", "fork", "namespaces")
    ),
    "New session until a pandas table and a chart as PNG": bars(
        {POOL: "pool_chart", COLD: "cold_chart"}, "chart", [*PROGRAMS], ("bare fork", "fork_chart")
    ),
    "Next cell, 1+1": bars({"Cellblock": "warm"}, "warm", ["ipykernel"], ("bare round trip to Python", "round_trip")),
    "10 MB printed, until all of it has arrived": bars({"Cellblock": "stdout"}, "stdout", [*PROGRAMS], ("bare pipe", "stdout")),
}


def svg(samples: Samples) -> str:
    """Draws what was measured; groups without a bar of ours are left out."""
    body, y = "", 8
    for title, group in GROUPS.items():
        values = [(label, series[0], samples.sum(series)) for label, series in group]
        if not any(first.startswith("cellblock/") and value is not None for _, first, value in values):
            continue
        y += 22
        body += f'<text x="0" y="{y}" font-weight="600" font-size="14">{title}</text>\n'
        y += 8
        for label, first, value in values:
            if value is not None:
                body += bar(label, first.split("/")[0], value, y)
                y += STEP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 26}" width="{WIDTH}" '
        'role="img" aria-label="Medians of Cellblock, its peers and the kernel\'s floor" '
        "font-family=\"system-ui, -apple-system, 'Segoe UI', sans-serif\" font-size=\"12\" "
        f'fill="{TEXT}">\n'
    )
    return f"{head}{axis(y)}{body}</svg>\n"


def axis(bottom: int) -> str:
    """Draws vertical lines at powers of ten, with their names below."""
    text = ""
    for decade in range(DECADES[0], DECADES[1] + 1):
        x = f"{position(10.0**decade):.1f}"
        text += (
            f'<line x1="{x}" y1="8" x2="{x}" y2="{bottom}" stroke="{PEERS}" stroke-opacity="0.25"/>\n'
            f'<text x="{x}" y="{bottom + 16}" text-anchor="middle" font-size="11">{duration(10.0**decade)}</text>\n'
        )
    return text


def bar(label: str, who: str, milliseconds: float, y: int) -> str:
    """Draws a bar with its label and its value."""
    width = max(position(milliseconds) - LEFT, 1)
    fill, stroke, dashes = PEERS, PEERS, ""
    weight, color = "400", TEXT
    if who == "cellblock":
        fill, stroke, weight, color = OURS, OURS, "600", OURS
    elif who == "floor":
        fill, stroke, dashes = "none", TEXT, ' stroke-dasharray="3 2"'
    middle = y + BAR - 3
    return (
        f'<text x="{LEFT - 8}" y="{middle}" text-anchor="end">{label}</text>\n'
        f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2" fill="{fill}" stroke="{stroke}"{dashes}/>\n'
        f'<text x="{LEFT + width + 6:.1f}" y="{middle}" font-weight="{weight}" fill="{color}">{duration(milliseconds)}</text>\n'
    )


def position(milliseconds: float) -> float:
    """Returns the position of a time on the scale."""
    first, last = DECADES
    share = (math.log10(milliseconds) - first) / (last - first) if milliseconds > 0 else 0.0
    return LEFT + min(max(share, 0.0), 1.0) * (RIGHT - LEFT)


def duration(milliseconds: float) -> str:
    """Returns a time for people."""
    return f"{number(milliseconds / 1000)} s" if milliseconds >= 1000 else f"{number(milliseconds)} ms"
