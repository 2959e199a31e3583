"""Where the gateway is, and what the scenarios of every client share."""

import os
import uuid
from typing import Final

URL: Final = os.environ["CELLBLOCK_URL"]
KEY: Final = os.environ["CELLBLOCK_KEY"]

# One model behind two kinds of provider.
MODELS: Final = ("mock-chat", "mock-responses")
# The same under a name by which frameworks take it for a reasoning model of OpenAI's.
REASONING_MODEL: Final = "gpt-5-mock"

SALES: Final = b"region,revenue\nnorth,10.5\nsouth,20\nnorth,20\n"
TOTALS: Final = b"region,revenue\nnorth,30.5\nsouth,20.0\n"
HELLO: Final = "Hello! Gr\u00fc\u00dfe, \u4f60\u597d \U0001f44b from the model."
ANALYSIS: Final = "{'north': 30.5, 'south': 20.0} Here it is: [totals](sandbox:/mnt/data/totals.csv)."
PNG: Final = b"\x89PNG\r\n\x1a\n"

# Two turns of one conversation: the second reads a variable that the first one set.
FIRST_TURN: Final = "Set x to forty-one."
SECOND_TURN: Final = "What is x plus one?"
SUM: Final = "It is 42."

WEATHER: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}

# Longer than any answer takes on a busy machine: what waits so long hangs.
PATIENCE: Final = 120.0
# Seconds between the event that code is about to run and the interruption of it: the event comes before the code runs, so
# each try waits longer until the code has begun.
PAUSES: Final = [0.03 * tries for tries in range(10)]


def new_key() -> str:
    """A key that no other conversation has."""
    return str(uuid.uuid4())
