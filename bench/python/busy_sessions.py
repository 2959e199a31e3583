"""Measures how many requests a server refuses while many sessions keep the processors busy.

Each client creates a session, runs cells that compute, ends it and begins again. Needs the program `cellblock`. Prints one JSON
object with the number of requests by status, and the errors of those that were refused.
"""

import argparse
import collections
import json
import os
import pathlib
import tempfile
import threading
import time

from server_process import ServerProcess

CODE = "import time\nend = time.process_time() + {busy}\nwhile time.process_time() < end: pass\n1"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="cellblock")
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--cells", type=int, default=4, help="cells of each session")
    parser.add_argument("--busy", type=float, default=0.05, help="seconds of processor time of a cell")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--port", type=int, default=18330)
    args = parser.parse_args()
    statuses: collections.Counter[str] = collections.Counter()
    errors: collections.Counter[str] = collections.Counter()
    lock = threading.Lock()
    with tempfile.TemporaryDirectory(prefix="cb-busy") as folder:
        # The number of sessions is what is measured.
        quotas = dict.fromkeys(["sandboxes", "concurrent_cells", "cells_per_minute"])
        config = {"sessions": {"max_per_key": 10_000}, "quotas": quotas}
        server = ServerProcess(args.program, pathlib.Path(folder), args.port, config)
        server.wait()
        until = time.monotonic() + args.seconds

        def send(method: str, path: str, body: object = None) -> object:
            try:
                status, answer = server.ask(method, path, body)
            except OSError as error:
                status, answer = 0, {"error": {"message": repr(error)}}
            with lock:
                statuses[f"{method} {'cells' if path.endswith('cells') else 'session'} {status}"] += 1
                if not 200 <= status < 300:
                    errors[str(answer)[:300]] += 1
                    return None
            return answer

        def use() -> None:
            while time.monotonic() < until:
                session = send("POST", "/v1/sessions", {})
                if session is None:
                    time.sleep(1)
                    continue
                path = f"/v1/sessions/{session['id']}"  # type: ignore[index]
                for _ in range(args.cells):
                    send("POST", f"{path}/cells", {"code": CODE.format(busy=args.busy)})
                send("DELETE", path)

        clients = [threading.Thread(target=use) for _ in range(args.sessions)]
        try:
            for client in clients:
                client.start()
            for client in clients:
                client.join()
        finally:
            server.end()
    result = {
        "sessions": args.sessions,
        "seconds": args.seconds,
        "requests": sum(statuses.values()),
        "by_status": dict(sorted(statuses.items())),
        "errors": dict(errors.most_common(5)),
        "load": os.getloadavg()[0],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
