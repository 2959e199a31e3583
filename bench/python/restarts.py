"""Restarts servers that share one Postgres one after the other while clients use them, and counts requests and those that failed.

A client sends each request once, to the next server that is ready, as a Service of Kubernetes does. Needs the URL of an empty
database and the program `cellblock`. Prints one JSON object; exits with 1 if a request failed or too few were sent.
"""

import argparse
import itertools
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

from replicas import Replica


class Clients:
    """Clients that use sessions until they are stopped."""

    def __init__(self, servers: list[Replica]) -> None:
        """Starts none."""
        self.servers = servers
        self.turns = itertools.count()
        self.done = threading.Event()
        self.sent = 0
        self.failed: list[str] = []
        self.lock = threading.Lock()

    def ready(self) -> Replica:
        """Returns the next server that is ready."""
        while True:
            server = self.servers[next(self.turns) % len(self.servers)]
            try:
                if server.ask("GET", "/readyz")[0] == 200:
                    return server
            except (OSError, ValueError):
                time.sleep(0.01)

    def send(self, method: str, path: str, body: object) -> object:
        """Sends a request once and counts it."""
        server = self.ready()
        try:
            status, answer = server.ask(method, path, body)
        except (OSError, ValueError) as error:
            status, answer = 0, repr(error)
        with self.lock:
            self.sent += 1
            if not 200 <= status < 300:
                self.failed.append(f"{method} {path} at {server.port}: {status} {answer}")
                return None
        return answer

    def use(self, pace: float) -> None:
        """Creates sessions, runs two cells in each and ends it."""
        while not self.done.is_set():
            session = self.send("POST", "/v1/sessions", {})
            if session is None:
                continue
            path = f"/v1/sessions/{session['id']}"  # type: ignore[index]
            for code, value in (("x = 41; x", 41), ("x + 1", 42)):
                time.sleep(pace)
                cell = self.send("POST", f"{path}/cells", {"code": code})
                if cell is not None and cell["outputs"][0]["value"] != value:  # type: ignore[index]
                    self.failed.append(f"{path}: {cell}")
            time.sleep(pace)
            self.send("DELETE", path, {})


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", help="URL of an empty database")
    parser.add_argument("--program", default="cellblock")
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--restarts", type=int, default=4)
    parser.add_argument("--requests", type=int, default=700, help="minimum number of requests")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--pace", type=float, default=0.1, help="pause of a client after a request, in seconds")
    parser.add_argument("--port", type=int, default=18310)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cb-restarts") as name:
        folder = pathlib.Path(name)

        def start(at: int, run: int) -> Replica:
            return Replica(args.program, folder / f"{at}-{run}", args.port + at, args.database)

        servers = [start(at, 0) for at in range(args.servers)]
        clients = Clients(servers)
        threads = [threading.Thread(target=clients.use, args=(args.pace,)) for _ in range(args.clients)]
        draining = []
        try:
            for server in servers:
                server.wait()
            for thread in threads:
                thread.start()
            for run in range(1, args.restarts + 1):
                while clients.sent < args.requests * run // (args.restarts + 1):
                    time.sleep(0.05)
                at = (run - 1) % args.servers
                began = time.perf_counter()
                code = servers[at].end()
                draining.append(round(time.perf_counter() - began, 2))
                if code != 0:
                    clients.failed.append(f"a server ended with {code}")
                servers[at] = start(at, run)
                servers[at].wait()
            while clients.sent < args.requests:
                time.sleep(0.05)
        finally:
            clients.done.set()
            for thread in threads:
                thread.join(timeout=300)
            for server in servers:
                server.process.terminate()
            for server in servers:
                server.end()
    result = {
        "servers": args.servers,
        "restarts": args.restarts,
        "clients": args.clients,
        "requests": clients.sent,
        "failed": len(clients.failed),
        "seconds_to_drain": draining,
        "load": os.getloadavg()[0],
    }
    print(json.dumps(result))
    sys.exit("\n".join(clients.failed) if clients.failed else 0)


if __name__ == "__main__":
    main()
