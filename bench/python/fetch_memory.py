"""Measures a server's memory while threads of a cell fetch large answers of a connector at the same time, and afterwards.

Needs the program `cellblock`. Prints one JSON object with MiB of the server's process: before, the most meanwhile, and 10 s after
the session is gone. The bytes in flight are bounded as by default.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

from server_process import ServerProcess

CODE = """
from concurrent.futures import ThreadPoolExecutor
def fetch(n):
    return len(large.rows(mb={megabytes}, n=n, form="rows"))
with ThreadPoolExecutor({threads}) as pool:
    print(sum(pool.map(fetch, range({threads}))))
"""


def cell(server: ServerProcess, threads: int, megabytes: int) -> None:
    """Runs the cell in a session of its own, which is gone then."""
    _, session = server.ask("POST", "/v1/sessions", {"toolset": "notebook"})
    path = f"/v1/sessions/{session['id']}"  # type: ignore[index]
    code = CODE.format(threads=threads, megabytes=megabytes)
    _, answer = server.ask("POST", f"{path}/cells", {"code": code, "timeout": 280})
    if answer["outcome"] != "completed":  # type: ignore[index]
        sys.exit(json.dumps(answer))
    server.ask("DELETE", path)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="cellblock")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--port", type=int, default=18320)
    args = parser.parse_args()
    program = pathlib.Path(__file__).with_name("large_rows.py").resolve()
    command = {"type": "command", "command": [sys.executable, str(program)], "max_result": "1GiB", "timeout": "280s"}
    config = {
        "connectors": {"large": command},
        "limits": {"memory": "8GiB"},
    }
    with tempfile.TemporaryDirectory(prefix="cb-fetch") as folder:
        server = ServerProcess(args.program, pathlib.Path(folder), args.port, config)
        server.wait()
        try:
            cell(server, 1, 1)
            time.sleep(5)
            before = server.resident()
            samples, done = [before], threading.Event()

            def watch() -> None:
                while not done.wait(0.02):
                    samples.append(server.resident())

            watching = threading.Thread(target=watch)
            watching.start()
            began = time.perf_counter()
            cell(server, args.threads, args.megabytes)
            seconds = time.perf_counter() - began
            done.set()
            watching.join()
            time.sleep(10)
            after = server.resident()
        finally:
            server.end()
    result = {
        "threads": args.threads,
        "megabytes": args.megabytes,
        "seconds": round(seconds, 1),
        "before_mib": before,
        "most_mib": max(samples),
        "after_mib": after,
        "load": os.getloadavg()[0],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
