"""A small MCP server over stdio, from the standard library alone: forecasts that are made up."""

import hashlib
import json
import sys
import time

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


def call(name, arguments):
    try:
        value = {"get_forecast": get_forecast, "slow": slow}[name](**arguments)
    except Exception as error:
        return {"content": [{"type": "text", "text": repr(error)}], "isError": True}
    return {"content": [{"type": "text", "text": json.dumps(value)}]}


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer = {"error": {"code": -32601, "message": "unknown method"}}
        params = message.get("params", {})
        if message["method"] == "initialize":
            info = {"name": "weather", "version": "1"}
            answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
        elif message["method"] == "tools/list":
            answer = {"result": {"tools": TOOLS}}
        elif message["method"] == "tools/call":
            answer = {"result": call(params["name"], params.get("arguments", {}))}
        elif message["method"] == "ping":
            answer = {"result": {}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


main()
