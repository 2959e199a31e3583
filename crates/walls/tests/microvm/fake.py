#!/usr/bin/env python3
"""A program that behaves like QEMU until the machine would have to answer. `behavior.json` beside it says how it fails."""

import json
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path

BEHAVIOR: dict[str, bool] = json.loads((Path(__file__).resolve().parent / "behavior.json").read_text())


def connected(words: str, name: str) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)
    found = re.search(f"id={name},path=([^, ]+)", words)
    assert found, words
    stream.connect(found[1])
    return stream


def fill(memory: str) -> None:
    """Uses the memory until the file system is full; the kernel then ends a program that maps the file."""
    try:
        with Path(memory).open("wb") as file:
            while True:
                file.write(bytes(1 << 20))
    except OSError:
        os.kill(os.getpid(), signal.SIGBUS)


def answer(command: str, arguments: dict[str, str]) -> dict[str, str]:
    if command == "migrate":
        Path(arguments["uri"].removeprefix("file:")).write_text("the state")
        return {}
    if command == "migrate-incoming":
        assert Path(arguments["uri"].removeprefix("file:")).read_text() == "the state"
    return {"query-migrate": {"status": "completed"}, "query-status": {"status": "paused"}}.get(command, {})


def run(words: list[str]) -> None:
    if words == ["--version"]:
        print("QEMU emulator version 10.0.2 (fake)")
        return
    text = " ".join(words)
    if "id=control" not in text:
        sys.exit("this is not a processor")
    restored = "-incoming" in words
    if restored and BEHAVIOR.get("absent"):
        time.sleep(1000)
    stream = connected(text, "host")
    control = connected(text, "control")
    if not restored:
        memory = re.search("mem-path=([^, ]+)", text)
        assert memory, text
        if BEHAVIOR.get("full"):
            fill(memory[1])
        Path(memory[1]).write_text("the memory")
    control.sendall(b'{"QMP": {}}\n')
    for line in control.makefile("rb"):
        asked = json.loads(line)
        command = asked["execute"]
        if restored and BEHAVIOR.get("deaf"):
            continue
        reply = {"return": answer(command, asked.get("arguments") or {}), "id": asked["id"]}
        control.sendall(json.dumps(reply).encode() + b"\n")
        if command == "quit":
            return
        if command == "cont" and BEHAVIOR.get("dies"):
            os.kill(os.getpid(), signal.SIGKILL)
        if command == "qmp_capabilities" and not restored:
            print("ready", flush=True)
    stream.close()


if __name__ == "__main__":
    run(sys.argv[1:])
