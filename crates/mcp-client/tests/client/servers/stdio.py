"""A server of tools over stdin and stdout that does one thing wrong, or nothing: `stdio.py HOW [REVISION]`."""

import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

HOW = sys.argv[1]
NEWEST = "newest" in sys.argv[2:]
# Where it writes what a test wants to know.
NOTES = os.environ.get("NOTES", "")
OBJECT = {"type": "object"}


def note(text: str) -> None:
    """Tells the test something."""
    if NOTES:
        with open(NOTES, "a", encoding="utf-8") as notes:
            notes.write(text + "\n")


def starts() -> int:
    """The number of its processes until now."""
    with open(NOTES, encoding="utf-8") as notes:
        return sum(line.startswith("pid ") for line in notes)


def send(message: dict[str, Any]) -> None:
    """Writes a message."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(id: Any, result: Any) -> None:
    """Answers a request."""
    send({"jsonrpc": "2.0", "id": id, "result": result})


def begin_answer(id: Any, result: str) -> None:
    """Writes an answer whose result is text that may be anything."""
    sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {json.dumps(id)}, "result": {result}')


def text(said: str) -> dict[str, Any]:
    """A result of text."""
    return {"content": [{"type": "text", "text": said}]}


def receive() -> dict[str, Any]:
    """Reads a message; ends with its stdin."""
    line = sys.stdin.readline()
    if not line:
        note("end of stdin")
        sys.exit(0)
    return json.loads(line)


def forever() -> None:
    """Does nothing any more."""
    while True:
        time.sleep(3600)


def tools(params: dict[str, Any]) -> dict[str, Any]:
    """The tools, good or bad."""
    listed: list[dict[str, Any]] = [
        {"name": "work", "description": "Works.", "inputSchema": OBJECT}
    ]
    match HOW:
        case "names":
            listed += [
                {"name": "work", "inputSchema": OBJECT},
                {"name": "a b", "inputSchema": OBJECT},
            ]
            listed += [
                {"name": "schema", "inputSchema": {"properties": 5}},
                {"name": "good", "inputSchema": OBJECT},
            ]
            listed += [
                {
                    "name": "away",
                    "inputSchema": {
                        "properties": {"a": {"$ref": "http://127.0.0.1:9/s"}}
                    },
                }
            ]
        case "pages":
            page = int(params.get("cursor") or 0)
            return {
                "tools": [{"name": f"work{page}", "inputSchema": OBJECT}],
                "nextCursor": str(page + 1),
            }
        case "changes":
            listed += [
                {"name": f"new{count}", "inputSchema": OBJECT}
                for count in range(CALLS[0])
            ]
    return {"tools": listed}


CALLS = [0]


def call(id: Any, params: dict[str, Any]) -> None:
    """A call, of which it makes what it is here for."""
    CALLS[0] += 1
    arguments = params.get("arguments") or {}
    if arguments.get("be") == "good":
        answer(id, text(f"call {CALLS[0]}"))
        return
    match HOW:
        case "large":
            mebibyte = "a" * (1 << 20)
            begin_answer(id, '{"content": [{"type": "text", "text": "')
            for _ in range(int(arguments.get("mib", 200))):
                sys.stdout.write(mebibyte)
            sys.stdout.write('"}]}}\n')
            sys.stdout.flush()
        case "endless":
            while True:
                sys.stdout.write("a" * (1 << 16))
        case "hang" | "list":
            forever()
        case "slow":
            # Reads on meanwhile, as good servers do.
            threading.Timer(3600, answer, (id, text("late"))).start()
        case "dies":
            os._exit(3)
        case "leaves":
            answer(id, text("gone"))
            os._exit(0)
        case "invalid":
            begin_answer(id, "{\n")
            sys.stdout.flush()
        case "binary":
            sys.stdout.buffer.write(b"{\xff\xfe}\n")
            sys.stdout.flush()
        case "noisy":
            for number in range(50):
                print(f"working on {number}")
            answer(id, text("done"))
        case "noise":
            while True:
                print("no message")
        case "deep":
            nested = "[" * 5000 + "]" * 5000
            begin_answer(id, f'{{"structuredContent": {nested}}}}}\n')
            sys.stdout.flush()
        case "many":
            answer(id, {"structuredContent": [0] * 50_000})
        case "asks":
            refusals = []
            for number, method in enumerate(
                ["sampling/createMessage", "elicitation/create", "roots/list", "ping"]
            ):
                send(
                    {
                        "jsonrpc": "2.0",
                        "id": f"s{number}",
                        "method": method,
                        "params": {"messages": [], "maxTokens": 5},
                    }
                )
                told = receive()
                assert told["id"] == f"s{number}", told
                refusals.append(told.get("error", {}).get("code", "answered"))
            answer(id, {"structuredContent": refusals})
        case "floods":
            while True:
                send({"jsonrpc": "2.0", "id": "s", "method": "ping"})
        case "input":
            answer(id, {"resultType": "input_required", "inputRequests": {}})
        case "failed":
            answer(id, text("no such city") | {"isError": True})
        case "refuses":
            send(
                {
                    "jsonrpc": "2.0",
                    "id": None,
                    "error": {"code": -32602, "message": "wrong\nargument"},
                }
            )
        case "changes":
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            answer(id, text("changed"))
        case "environment":
            print("a line for the log", file=sys.stderr)
            answer(id, {"structuredContent": dict(os.environ)})
        case _:
            answer(
                id,
                {
                    "content": [],
                    "structuredContent": arguments | {"text": str(CALLS[0])},
                },
            )


def begin(message: dict[str, Any]) -> None:
    """The beginning of a conversation."""
    about = {
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "test", "version": "1"},
    }
    match message["method"]:
        case "server/discover" if HOW == "late" and starts() == 1:
            # As if it still started.
            pass
        case "initialize" if HOW == "late":
            refusal = {
                "code": -32022,
                "message": "the initialize handshake is not accepted",
            }
            send({"jsonrpc": "2.0", "id": message["id"], "error": refusal})
        case "server/discover" if NEWEST:
            answer(
                message["id"],
                about
                | {
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "ttlMs": 0,
                    "cacheScope": "private",
                },
            )
        case "server/discover" if HOW == "before":
            # As some servers of before do with what they do not know.
            sys.exit(1)
        case "initialize":
            answer(
                message["id"],
                about | {"protocolVersion": message["params"]["protocolVersion"]},
            )
        case method:
            send(
                {
                    "jsonrpc": "2.0",
                    "id": message["id"],
                    "error": {"code": -32601, "message": f"no {method}"},
                }
            )


def main() -> None:
    """Serves until its stdin ends."""
    note(f"pid {os.getpid()}")
    if HOW == "children":
        child = subprocess.Popen(["sleep", "3600"])
        note(f"pid {child.pid}")
    if HOW == "connect":
        forever()
    if HOW == "starts":
        sys.exit(4)
    while True:
        message = receive()
        match message.get("method"):
            case "tools/list":
                if HOW == "list":
                    forever()
                answer(message["id"], tools(message.get("params") or {}))
            case "tools/call":
                meta = message["params"].get("_meta", {})
                note(
                    f"called at {meta.get('io.modelcontextprotocol/protocolVersion', 'a session')}"
                )
                call(message["id"], message["params"])
            case "ping":
                answer(message["id"], {})
            case "notifications/cancelled":
                note(f"cancelled {message['params']['requestId']}")
            case method if method is not None and "id" in message:
                begin(message)


main()
