"""A program of a connector whose answers are as large as they are asked to be.

    rows(mb=100, n=1)                   # a table of 100 MB of JSON
    rows(mb=100, n=1, form="value")     # the same as a list of objects

`n` makes calls differ, so that no answer is that of an equal call. Memory of the program: one answer at a time.
"""

import json
import sys

ROW = b'{"day":"2026-01-01","city":"Kyiv","station":1234,"high":10.5,"low":-2.25,"note":"no rain"}'
FUNCTION = {
    "name": "rows",
    "description": "Rows of so many megabytes.",
    "parameters": {
        "type": "object",
        "properties": {
            "mb": {"type": "integer"},
            "n": {"type": "integer"},
            "form": {"type": "string", "enum": ["rows", "value"], "default": "rows"},
        },
        "required": ["mb", "n"],
    },
    "effect": "reads",
}


def main() -> None:
    """Answers requests until there are none."""
    out = sys.stdout.buffer
    for line in sys.stdin:
        request = json.loads(line)
        if request["method"] == "functions":
            out.write(json.dumps({"id": request["id"], "value": [FUNCTION]}).encode())
        elif request["method"] == "call":
            given = request["arguments"]
            out.write(b'{"id":%d,"%s":[' % (request["id"], given["form"].encode()))
            count = max(1, given["mb"] * 1_000_000 // (len(ROW) + 1))
            piece = ROW + (b"," + ROW) * 999
            for _ in range(count // 1000):
                out.write(piece + b",")
            out.write(ROW + (b"," + ROW) * (count % 1000) + b"]}")
        else:
            continue
        out.write(b"\n")
        out.flush()


main()
