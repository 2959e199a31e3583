"""A program of a connector of the type `command`, which behaves as its first argument says.

It writes `pid N` to the file in `NOTES` when it starts, and each method that it reads.
"""

import json
import os
import subprocess
import sys
import threading
import time

how = sys.argv[1]
lock = threading.Lock()


def note(text: str) -> None:
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(text + "\n")


def send(message: object, after: bytes = b"") -> None:
    with lock:
        sys.stdout.buffer.write(json.dumps(message).encode() + b"\n" + after)
        sys.stdout.buffer.flush()


def card(name: str, effect: str = "reads", **parameters: str) -> dict:
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": f"Does {name}.", "parameters": schema, "effect": effect}


FUNCTIONS = [card("work", be="string"), card("slow", key="string"), card("change", "writes"), card("none")]


def starts() -> bool:
    """Whether this is the first process."""
    with open(os.environ["NOTES"]) as notes:
        return sum(line.startswith("pid") for line in notes) == 1


def work(call: int, arguments: dict) -> None:
    match arguments.get("be"):
        case "value":
            send({"id": call, "value": {"greeting": "hello", "arguments": arguments}})
        case "rows":
            send({"id": call, "rows": [{"city": "Graz", "people": 300_000}, {"city": "Wien", "people": None}]})
        case "environment":
            send({"id": call, "value": {"names": sorted(os.environ), "folder": os.getcwd()}})
        case "secret":
            print(os.environ["HOUSE_KEY"], file=sys.stderr, flush=True)
            send({"id": call, "error": {"kind": "unauthorized", "message": "bad key " + os.environ["HOUSE_KEY"]}})
        case "limit":
            send({"id": call, "error": {"kind": "rate_limit", "message": "slow down", "retry_after": 5}})
        case "arrow":
            table = open(os.environ["TABLE"], "rb").read()
            send({"id": call, "arrow": len(table)}, table)
        case "invalid arrow":
            send({"id": call, "arrow": 4}, b"PAR1")
        case "large arrow":
            send({"id": call, "arrow": 3 << 20}, b"\0" * (3 << 20))
        case "cut arrow":
            send({"id": call, "arrow": 100}, b"x" * 10)
            sys.stdout.close()
            os._exit(0)
        case "garbage":
            print("Loading...", flush=True)
        case "unknown":
            send({"id": 99, "value": 1})
        case "twice":
            send({"id": call, "value": 1})
            send({"id": call, "value": 2})
        case "long":
            sys.stdout.write("x" * (3 << 20))
            sys.stdout.flush()
        case "flood":
            while True:
                send({"id": 10**6, "value": "flood"})
        case "close":
            os.close(1)
            time.sleep(3600)
        case "exit":
            os._exit(3)
        case "children":
            child = subprocess.Popen(["sleep", "3600"])
            note(f"pid {child.pid}")
            send({"id": call, "value": child.pid})
        case "bad":
            send({"id": call, "value": 1, "rows": []})
        case "silence":
            pass


def listed() -> object:
    if how == "twice-listed":
        return {"value": [card("work"), card("work")]}
    if how == "no-effect":
        return {"value": [{"name": "work"}]}
    if how == "no-list":
        return {"value": {"work": {}}}
    if how == "refuses":
        return {"error": {"message": "cannot import house"}}
    return {"value": FUNCTIONS}


note(f"pid {os.getpid()}")
if how == "exits" or (how == "exits-once" and starts()):
    print("no such house", file=sys.stderr, flush=True)
    sys.exit(3)
if how == "deaf":
    time.sleep(3600)
waiting: dict[int, threading.Event] = {}
for line in sys.stdin:
    message = json.loads(line)
    note(message["method"])
    if message["method"] == "functions":
        if how != "mute":
            send({"id": message["id"], **listed()})
        if how == "hears-once":
            time.sleep(3600)
    elif message["method"] == "cancel":
        waiting[message["id"]].set()
    elif message["function"] == "slow":
        canceled = waiting[message["id"]] = threading.Event()

        def wait(call: int, canceled: threading.Event, key: str) -> None:
            if key == "quick":
                send({"id": call, "value": key})
            elif canceled.wait(3600):
                note("canceled")
                send({"id": call, "error": {"kind": "timeout", "message": "canceled"}})

        arguments = (message["id"], canceled, message["arguments"]["key"])
        threading.Thread(target=wait, args=arguments, daemon=True).start()
    elif message["function"] == "none":
        send({"id": message["id"], "error": {"kind": "empty_data", "message": "nothing"}})
    else:
        work(message["id"], message["arguments"])
