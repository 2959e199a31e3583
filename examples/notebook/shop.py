"""An MCP server over stdio: sales of umbrellas that are made up."""

import hashlib

from server import serve

TOOLS = [
    {
        "name": "get_sales",
        "description": "Returns the sales of umbrellas in a city, one row per day: number and revenue.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 1, "description": "Name of the city."},
                "days": {"type": "integer", "default": 3, "minimum": 1, "maximum": 365},
            },
            "required": ["city"],
        },
        # Equal calls within a session are answered once.
        "annotations": {"readOnlyHint": True},
    },
]


def get_sales(city, days=3):
    rows = []
    for day in range(1, days + 1):
        sold = hashlib.sha256(f"umbrellas/{city}/{day}".encode()).digest()[0] % 50
        rows.append({"city": city, "day": day, "umbrellas": sold, "revenue": sold * 19.9})
    return rows


serve("shop", TOOLS, {"get_sales": get_sales})
