"""Measures commands and skills over HTTP: `true` in the shell of a live container, with a model that answers at once,
and a new session with its first cell, with and without a skill of 500 files, in turns.

Prints one JSON object: milliseconds as medians over the rounds.
"""

import argparse
import io
import json
import os
import pathlib
import statistics
import tempfile
import time
import urllib.request
import zipfile

from server_process import ServerProcess

MANIFEST = "---\nname: many\ndescription: Has many files.\n---\nRead the files.\n"
FILES = 500


def upload(server: ServerProcess) -> str:
    """Stores a skill and returns its id."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("many/SKILL.md", MANIFEST)
        for number in range(1, FILES):
            archive.writestr(f"many/references/{number}.md", f"# {number}\n" * 200)
    head = b'--cut\r\ncontent-disposition: form-data; name="files"; filename="many.zip"\r\n\r\n'
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/v1/skills",
        data=head + packed.getvalue() + b"\r\n--cut--\r\n",
        headers={"content-type": "multipart/form-data; boundary=cut"},
    )
    with urllib.request.urlopen(request) as answer:
        return str(json.load(answer)["id"])


def asked(server: ServerProcess, path: str, body: object) -> dict[str, object]:
    """Posts a request, which must succeed."""
    status, answer = server.ask("POST", path, body)
    assert status < 300 and isinstance(answer, dict), answer
    return answer


def command(server: ServerProcess, container: object) -> float:
    """Returns the milliseconds of a response that runs `true` in a container."""
    environment = {"type": "container_reference", "container_id": container}
    tools = [{"type": "shell", "environment": environment}]
    begin = time.perf_counter()
    response = asked(server, "/v1/responses", {"model": "s", "input": "run", "tools": tools, "store": False})
    took = (time.perf_counter() - begin) * 1000
    assert response["status"] == "completed", response
    return took


def first_cell(server: ServerProcess, skills: list[dict[str, str]]) -> float:
    """Returns the milliseconds of a new session and its first cell."""
    begin = time.perf_counter()
    session = asked(server, "/v1/sessions", {"skills": skills})
    asked(server, f"/v1/sessions/{session['id']}/cells", {"code": "1 + 1"})
    took = (time.perf_counter() - begin) * 1000
    server.ask("DELETE", f"/v1/sessions/{session['id']}")
    return took


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="target/release/cellblock")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--port", type=int, default=18097)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "script.json"
        calls = [{"name": "shell", "arguments": {"commands": ["true"]}}]
        conversation = {"when": "run", "answers": [{"calls": calls}, {"text": "done"}]}
        script.write_text(json.dumps({"conversations": [conversation]}))
        providers = {"s": {"type": "scripted", "script": str(script), "models": ["s"]}}
        quotas = dict.fromkeys(["sandboxes", "concurrent_cells", "cells_per_minute"])
        config = {"providers": providers, "quotas": quotas}
        server = ServerProcess(given.program, pathlib.Path(folder) / "server", given.port, config)
        try:
            server.wait()
            container = asked(server, "/v1/containers", {"name": "commands"})["id"]
            skill = [{"type": "skill_reference", "skill_id": upload(server)}]
            measured = [
                (command(server, container), first_cell(server, []), first_cell(server, skill))
                for _ in range(given.rounds + 1)
            ]
        finally:
            server.end()
    # The first round makes what is made once.
    shell, plain, with_skill = (statistics.median(times) for times in zip(*measured[1:], strict=True))
    print(
        json.dumps(
            {
                "rounds": given.rounds,
                "shell_true_ms": round(shell, 1),
                "session_ms": round(plain, 1),
                "session_with_skill_ms": round(with_skill, 1),
                "load": os.getloadavg()[0],
            }
        )
    )


if __name__ == "__main__":
    main()
