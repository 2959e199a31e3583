"""An MCP server over stdio: forecasts that are made up."""

import hashlib
import time

from server import serve

CITY = {"type": "string", "minLength": 1, "description": "Name of the city."}
TOOLS = [
    {
        "name": "get_forecast",
        "description": "Returns the forecast of a city, one row per day: high and rain.",
        "inputSchema": {
            "type": "object",
            "properties": {"city": CITY, "days": {"type": "integer", "default": 3, "minimum": 1, "maximum": 365}},
            "required": ["city"],
        },
        # Equal calls within a session are answered once.
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "slow",
        "description": "Waits, and returns how long.",
        "inputSchema": {
            "type": "object",
            "properties": {"seconds": {"type": "number", "minimum": 0}},
            "required": ["seconds"],
        },
    },
]


def get_forecast(city, days=3):
    rows = []
    for day in range(1, days + 1):
        noise = hashlib.sha256(f"{city}/{day}".encode()).digest()
        rows.append({"city": city, "day": day, "high": noise[0] % 35, "rain_mm": noise[1] % 20})
    return rows


def slow(seconds):
    time.sleep(seconds)
    return {"waited": seconds}


serve("weather", TOOLS, {"get_forecast": get_forecast, "slow": slow})
