"""Measures many sessions over several servers that share one Postgres: times of first and later cells, and memory.

Each session is created with one cell, and then used at its own server, at another one, which forwards it, and again at its own.
Needs a database, whose URL is an argument, and the program `cellblock`. Prints one JSON object.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile
import time

from processes import family
from server_process import ServerProcess


class Replica(ServerProcess):
    """One of several servers that share a database."""

    def __init__(self, program: str, folder: pathlib.Path, port: int, database: str) -> None:
        """Starts it."""
        config = {"advertise": f"http://127.0.0.1:{port}", "records": database, "sessions": {"max_per_key": 100_000}}
        super().__init__(program, folder, port, config)


def memory(pid: int, key: str) -> int:
    """Returns a figure of a process in KiB."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(key))


def summary(times: list[float]) -> dict[str, float]:
    """Returns percentiles in milliseconds."""
    times = sorted(times)
    at = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
    return {name: round(times[(len(times) - 1) * part // 100] * 1000, 1) for name, part in at.items()}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", help="URL of an empty database")
    parser.add_argument("--program", default="cellblock")
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--port", type=int, default=18300)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cb-replicas") as folder:
        servers = [
            Replica(args.program, pathlib.Path(folder) / str(at), args.port + at, args.database) for at in range(args.servers)
        ]
        try:
            for server in servers:
                server.wait()
            print(json.dumps(measure(args, servers)))
        finally:
            for server in servers:
                server.process.terminate()
            for server in servers:
                server.end()


def measure(args: argparse.Namespace, servers: list[Replica]) -> dict[str, object]:
    """Creates all sessions, and uses each of them three times."""
    empty = [sum(memory(pid, "Pss:") for pid in family(server.process.pid)) for server in servers]

    def timed(server: Replica, path: str, body: object, good: int) -> tuple[float, object]:
        began = time.perf_counter()
        status, answer = server.ask("POST", path, body)
        elapsed = time.perf_counter() - began
        if status != good:
            sys.exit(f"{path}: {status} {answer}")
        return elapsed, answer

    def first(number: int) -> tuple[float, str]:
        began = time.perf_counter()
        own = servers[number % len(servers)]
        _, session = timed(own, "/v1/sessions", {}, 201)
        name = session["id"]  # type: ignore[index]
        _, answer = timed(own, f"/v1/sessions/{name}/cells", {"code": f"x = {number}; x"}, 200)
        assert answer["outputs"][0]["value"] == number, answer  # type: ignore[index]
        return time.perf_counter() - began, name

    def later(number: int, name: str, forwarded: int) -> float:
        server = servers[(number + forwarded) % len(servers)]
        elapsed, answer = timed(server, f"/v1/sessions/{name}/cells", {"code": "x"}, 200)
        assert answer["outputs"][0]["value"] == number, answer  # type: ignore[index]
        return elapsed

    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        began = time.perf_counter()
        created = list(pool.map(first, range(args.sessions)))
        creating = time.perf_counter() - began
        names = [name for _, name in created]
        own = list(pool.map(lambda it: later(it[0], it[1], 0), enumerate(names)))
        other = list(pool.map(lambda it: later(it[0], it[1], 1), enumerate(names)))
        again = list(pool.map(lambda it: later(it[0], it[1], 0), enumerate(names)))
    families = [family(server.process.pid) for server in servers]
    full = [sum(memory(pid, "Pss:") for pid in pids) for pids in families]
    gateways = [memory(server.process.pid, "Rss:") for server in servers]
    return {
        "servers": args.servers,
        "sessions": args.sessions,
        "at_once": args.at_once,
        "create_and_first_cell_ms": summary([elapsed for elapsed, _ in created]),
        "sessions_per_second": round(args.sessions / creating, 1),
        "cell_at_its_server_ms": summary(own),
        "cell_at_its_server_again_ms": summary(again),
        "cell_forwarded_ms": summary(other),
        "processes": sum(map(len, families)),
        "pss_empty_mib": [it // 1024 for it in empty],
        "pss_full_mib": [it // 1024 for it in full],
        "pss_per_session_mib": round((sum(full) - sum(empty)) / 1024 / args.sessions, 2),
        "rss_of_servers_mib": [it // 1024 for it in gateways],
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    main()
