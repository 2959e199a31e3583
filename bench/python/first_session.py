"""Measures the time to the first result of a program that uses the Python client, with a warm host and without one, in turn.

Runs with any Python that has the client, beside a host that `cellblock warm start` has started. Prints one JSON object:
milliseconds as medians over the rounds, and their ratio.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

PROGRAM = """
import time
begin = time.perf_counter()
import cellblock
session = cellblock.Session()
assert session.run("1+1").value == 2
print(time.perf_counter() - begin)
session.close()
"""


def first_result(setting: dict[str, str]) -> float:
    """Returns the milliseconds from the import of the client to its first value."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **setting}, stdout=subprocess.PIPE, text=True, check=True
    )
    return float(ran.stdout) * 1000


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    os.environ.pop("CELLBLOCK_WARM", None)
    measured = [(first_result({"CELLBLOCK_WARM": "off"}), first_result({})) for _ in range(rounds)]
    alone, warm = (statistics.median(times) for times in zip(*measured, strict=True))
    print(
        json.dumps(
            {
                "rounds": rounds,
                "alone_ms": round(alone, 1),
                "warm_ms": round(warm, 1),
                "ratio": round(alone / warm, 1),
                "load": os.getloadavg()[0],
            }
        )
    )


if __name__ == "__main__":
    main()
