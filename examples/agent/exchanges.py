"""A server of tools (MCP) that knows what exchanges hold and what a coin costs. It needs the package `mcp`, version 2."""

import json
import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

RESERVES = Path(__file__).parent.parent / "reserves"

server = MCPServer("exchanges")


@server.tool()
def get_reserves(exchange: str) -> dict[str, Any]:
    """The reserves of an exchange, day by day: `alpha`, `beta` or `gamma`."""
    if exchange not in {"alpha", "beta", "gamma"}:
        raise ValueError(
            f"there is no exchange {exchange!r}; there are alpha, beta and gamma"
        )
    with (RESERVES / f"{exchange}.json").open(encoding="utf-8") as file:
        known: dict[str, Any] = json.load(file)
    return known


@server.tool()
def get_price_history(days: int = 90) -> dict[str, Any]:
    """The price of a coin in dollars, day by day from the first of January 2025."""
    first = date(2025, 1, 1)
    prices = [
        {
            "day": (first + timedelta(day)).isoformat(),
            "usd": round(95_000 + 4_000 * math.sin(day / 9), 2),
        }
        for day in range(days)
    ]
    return {"unit": "USD", "prices": prices}


if __name__ == "__main__":
    server.run("stdio")
