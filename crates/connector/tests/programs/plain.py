"""Plain functions, without any package."""

import asyncio
import datetime
import enum
import os
import sys
from dataclasses import dataclass
from typing import Annotated


class Unit(enum.Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


@dataclass
class Reading:
    room: str
    degrees: float


def reading(
    room: Annotated[str, "Name of the room."],
    day: datetime.date | None = None,
    unit: Unit = Unit.CELSIUS,
    *,
    token: str,
    rooms: list[str] = [],  # noqa: B006
    options: dict[str, int] | None = None,
) -> Reading:
    """A reading of a room."""
    assert token == "t0ken-of-the-house"
    assert day is None or isinstance(day, datetime.date)
    print("this goes to the log")
    os.write(1, b"and this, too\n")
    return Reading(room + unit.name, 21.5 if day is None else day.day)


def odd() -> dict:
    return {1: float("nan"), "when": datetime.datetime(2026, 1, 2, 3), "set": {1}, "tuple": (1, None)}


def fails(how: str):
    if how == "exit":
        sys.exit(3)
    if how == "timeout":
        raise TimeoutError("too slow")
    if how == "bytes":
        return b"x"
    raise ValueError(f"no {how} in {os.getcwd()}/x")


async def waits(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


def change(x: int) -> int:
    """Changes something."""
    return x


change.effect = "writes"


def _private() -> None: ...


SOME = {"first": odd, "second": fails}
NUMBER = 7
