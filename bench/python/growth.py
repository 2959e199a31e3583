"""Measures how the cost of requests grows with the work: sessions, outputs, inputs, history and records.

Starts `cellblock serve --no-model` with an empty state for each series, and asks it over HTTP. The cost of a request
is the processor time of the server and of everything below it, which other programs on the machine change little; the
elapsed time is beside it. Writes the samples to a JSON file.

    python3 bench/python/growth.py [NAME…]      measures all series, or those named
    python3 bench/python/growth_plots.py        draws them
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from processes import family

KIB = 1024
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
Point = dict[str, float]


class Server:
    """One `cellblock serve` with a state of its own."""

    def __init__(self, program: str, folder: str) -> None:
        """Starts it on a free port, with limits that no series reaches."""
        self.state = pathlib.Path(folder) / "state"
        config = {
            "listen": "127.0.0.1:0",
            "state": str(self.state),
            "sessions": {"max_per_key": 100_000, "max_data": 1 << 30},
        }
        path = pathlib.Path(folder) / "cellblock.yaml"
        path.write_text(json.dumps(config))
        self.log = pathlib.Path(folder) / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [program, "serve", "--config", str(path), "--no-model"], stdout=log, stderr=log, start_new_session=True
            )
        self._connection: http.client.HTTPConnection | None = None

    def wait(self) -> None:
        """Waits until it is ready."""
        for _ in range(3000):
            if self.process.poll() is not None:
                break
            if found := _ADDRESS.search(self.log.read_text(errors="replace")):
                self._connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=600)
                return
            time.sleep(0.1)
        sys.exit(f"the server is not ready:\n{self.log.read_text(errors='replace')}")

    def ask(self, method: str, path: str, body: bytes | object = None, kind: str = "application/json") -> object:
        """Makes one request, over a connection that is kept. Returns the answer's JSON."""
        assert self._connection is not None
        sent = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        self._connection.request(method, path, sent, {"content-type": kind})
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {path} was answered with {answer.status}: {text[:500]!r}")
        return json.loads(text) if text else None

    def session(self) -> str:
        """Creates a session that has run a cell."""
        made = self.ask("POST", "/v1/sessions", {})
        assert isinstance(made, dict)
        self.cell(made["id"], "1+1")
        return str(made["id"])

    def cell(self, session: str, code: str) -> dict[str, object]:
        """Runs a cell, which has to complete."""
        ran = self.ask("POST", f"/v1/sessions/{session}/cells", {"code": code})
        assert isinstance(ran, dict)
        if ran.get("outcome") not in ("completed", None) and ran.get("status") not in ("completed", None):
            sys.exit(f"the cell did not complete: {json.dumps(ran)[:1000]}")
        return ran

    def stop(self) -> None:
        """Ends it, and waits until its sandboxes are gone."""
        self.process.terminate()
        self.process.wait(300)


def busy(pids: list[int]) -> float:
    """Returns the processor time of these processes in milliseconds. Those that have ended count nothing."""
    total = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(task.read_text().split()[0])
            except OSError:
                continue
    return total / 1e6


def cost(server: Server, times: int, request: Callable[[], object]) -> Point:
    """Makes a request a few times in a row. Returns the processor time and the elapsed time of each in milliseconds.

    A session that is left alone for 20 ms copies itself, so nothing is read in between.
    """
    request()
    pids = family(server.process.pid)
    before, started = busy(pids), time.perf_counter()
    for _ in range(times):
        request()
    elapsed = (time.perf_counter() - started) * 1000
    return {"cpu_ms": (busy(pids) - before) / times, "elapsed_ms": elapsed / times}


def memory(server: Server) -> Point:
    """Returns the memory of all sandboxes in MiB: private pages in proportion, page tables, stacks of threads in the kernel."""
    keys = {"VmPTE": 0, "Pss_Anon": 0, "Threads": 0}
    for pid in family(server.process.pid)[1:]:
        try:
            text = pathlib.Path(f"/proc/{pid}/status").read_text() + pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        for line in text.splitlines():
            name, _, value = line.partition(":")
            if name in keys:
                keys[name] += int(value.split()[0])
    return {
        "pages_mib": keys["Pss_Anon"] / KIB,
        "page_tables_mib": keys["VmPTE"] / KIB,
        "stacks_mib": keys["Threads"] * 16 / KIB,
    }


def sessions(server: Server, most: int) -> Iterator[Point]:
    """Idle sessions: memory of all, and the cost of a cell in one of them and of one more session."""
    first = server.session()
    live = 1
    for count in (1, 10, 30, 100, 300, 1000):
        if count > most:
            return
        while live < count:
            server.session()
            live += 1
        # Kernels return memory and copy themselves when they are idle.
        time.sleep(3)
        cell = cost(server, 20, lambda: server.cell(first, "1+1"))
        more = cost(server, 3, server.session)
        live += 4
        yield {"x": live, **memory(server), "cell_cpu_ms": cell["cpu_ms"], "session_cpu_ms": more["cpu_ms"]}


def outputs(server: Server, _most: int) -> Iterator[Point]:
    """One cell that shows so many values."""
    session = server.session()
    for count in (1, 2, 4, 8, 16, 32, 64):
        code = f"for number in range({count}): display(number)"
        yield {"x": count, **cost(server, 20, lambda code=code: server.cell(session, code))}


def inputs(server: Server, most: int) -> Iterator[Point]:
    """One input of so many bytes, bound as bytes."""
    session = server.session()
    # The last one is the largest body of a request.
    for power in (10, 14, 17, 20, 23, 26, 28):
        size = 1 << power
        if size > most:
            return
        content = os.urandom(1 << 10) * (size >> 10)
        put = f"/v1/sessions/{session}/inputs/data?format=bytes"
        times = 5 if power < 26 else 1
        point = cost(server, times, lambda put=put, content=content: server.ask("PUT", put, content, "application/octet-stream"))
        yield {"x": len(content), **point}


def history(server: Server, most: int) -> Iterator[Point]:
    """A session that has run so many cells: the next cell."""
    session = server.session()
    ran = 1
    for count in (1, 10, 100, 1000, 3000, 10_000):
        if count > most:
            return
        while ran < count:
            server.cell(session, "1+1")
            ran += 1
        times = min(count, 50)
        point = cost(server, times, lambda: server.cell(session, "1+1"))
        yield {"x": ran, **point}
        ran += times + 1


def records(server: Server, most: int) -> Iterator[Point]:
    """A database that has so many files of the caller: one more, a list of 20, and one of them."""
    boundary = "limit"
    upload = (
        f'--{boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n--{boundary}\r\n'
        f'content-disposition: form-data; name="file"; filename="a.txt"\r\n\r\ntext\r\n--{boundary}--\r\n'
    ).encode()

    def put() -> dict[str, object]:
        made = server.ask("POST", "/v1/files", upload, f"multipart/form-data; boundary={boundary}")
        assert isinstance(made, dict)
        return made

    mine = put()
    with sqlite3.connect(server.state / "records.sqlite") as database:
        (owner, sha256) = database.execute("SELECT owner, sha256 FROM files").fetchone()
    held = 1
    for count in (1, 1000, 10_000, 100_000, 1_000_000):
        if count > most:
            return
        with sqlite3.connect(server.state / "records.sqlite") as database:
            rows = ((f"file-{n:032x}", owner, "a.txt", "user_data", 1, sha256, 1_700_000_000_000) for n in range(held, count))
            names = "id, owner, filename, purpose, bytes, sha256, created_ms"
            database.executemany(f"INSERT INTO files ({names}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        held = max(held, count)
        one = cost(server, 20, lambda: server.ask("GET", f"/v1/files/{mine['id']}"))
        listed = cost(server, 20, lambda: server.ask("GET", "/v1/files?limit=20"))
        added = cost(server, 5, put)
        yield {"x": count, "get_cpu_ms": one["cpu_ms"], "list_cpu_ms": listed["cpu_ms"], "upload_cpu_ms": added["cpu_ms"]}


SERIES = {it.__name__: it for it in (sessions, outputs, inputs, history, records)}
MOST = {"sessions": 1000, "outputs": 64, "inputs": 1 << 28, "history": 10_000, "records": 1_000_000}


def main() -> None:
    """Measures and keeps the samples; series that are not measured stay as they were."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", nargs="*", metavar="NAME", help=f"one of {', '.join(SERIES)}")
    parser.add_argument("--program", default="target/release/cellblock")
    parser.add_argument("--most", type=int, help="largest size to measure")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("bench/results/growth.json"))
    args = parser.parse_args()
    kept = json.loads(args.output.read_text()) if args.output.exists() else {}
    for name in args.series or SERIES:
        with tempfile.TemporaryDirectory() as folder:
            server = Server(args.program, folder)
            try:
                server.wait()
                points = []
                for point in SERIES[name](server, args.most or MOST[name]):
                    points.append({key: round(value, 3) for key, value in point.items()})
                    print(name, points[-1], file=sys.stderr, flush=True)
            finally:
                server.stop()
        kept[name] = {"points": points, "load": round(os.getloadavg()[0], 1)}
        args.output.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")


if __name__ == "__main__":
    main()
