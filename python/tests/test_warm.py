"""Sessions beside warm hosts.

CELLBLOCK_EXECUTABLE names the program to test, CELLBLOCK_TEST_IMAGE a small image, CELLBLOCK_HOME a data directory whose hosts nobody
else uses.
"""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import cellblock

PROGRAM = os.environ["CELLBLOCK_EXECUTABLE"]
IMAGE = os.environ["CELLBLOCK_TEST_IMAGE"]


def command(*arguments: str) -> str:
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout


def start(*options: str) -> None:
    command("warm", "start", "--image", IMAGE, *options)


def hosts() -> list[dict[str, Any]]:
    return list(json.loads(command("warm", "status", "--json"))["hosts"])


def in_use() -> int:
    return sum(host["running"] or 0 for host in hosts())


def until(what: str, so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not so():
        if time.monotonic() > deadline:
            raise AssertionError(f"after a minute: {what}")
        time.sleep(0.05)


def setting(value: str) -> Any:
    return patch.dict(os.environ, CELLBLOCK_WARM=value)


class Warm(unittest.TestCase):
    def setUp(self) -> None:
        os.environ.pop("CELLBLOCK_WARM", None)
        command("warm", "stop")

    def tearDown(self) -> None:
        command("warm", "stop")

    def assert_used(self) -> None:
        with cellblock.Session(image=IMAGE) as session:
            self.assertEqual(session.run("1 + 1").value, 2)
            until("one sandbox of the host is in use", lambda: in_use() == 1)
        until("no sandbox of the host is in use", lambda: in_use() == 0)

    def assert_unused(self) -> None:
        with cellblock.Session(image=IMAGE) as session:
            self.assertEqual(session.run("1 + 1").value, 2)
            self.assertEqual(in_use(), 0)

    def test_a_session_uses_the_host_of_its_image_and_policy_unless_it_is_off(self) -> None:
        start("--protection", "landlock_scopes=disabled")
        self.assert_unused()
        start()
        self.assert_used()
        with setting("off"):
            self.assert_unused()

    def test_the_variable_starts_a_host_for_the_sessions_after(self) -> None:
        with setting("10m"):
            self.assert_unused()
            until("a host is ready", lambda: [host["state"] for host in hosts()] == ["idle"])
            self.assertEqual(hosts()[0]["idle_limit_seconds"], 600)
            self.assert_used()

    def test_an_invalid_variable_is_an_error_that_names_it(self) -> None:
        with setting("soon"), self.assertRaisesRegex(cellblock.CellblockError, "CELLBLOCK_WARM: invalid idle timeout `soon`"):
            cellblock.Session(image=IMAGE)

    def test_a_session_goes_on_without_a_host_that_hangs(self) -> None:
        start()
        process = hosts()[0]["process"]
        with cellblock.Session(image=IMAGE) as before:
            os.kill(process, signal.SIGSTOP)
            try:
                self.assertEqual(before.run("1 + 1").value, 2)
                with cellblock.Session(image=IMAGE) as after:
                    self.assertEqual(after.run("1 + 1").value, 2)
            finally:
                os.kill(process, signal.SIGKILL)

    def test_sessions_say_that_their_host_has_ended_and_new_ones_work(self) -> None:
        start()
        host = hosts()[0]
        ended = f"warm host `{host['id']}` has ended"
        busy, idle, reader = (cellblock.Session(image=IMAGE) for _ in range(3))
        with busy, idle, reader:
            idle.run("x = 1").check()
            reader.write("a.txt", "kept")
            failures: list[Exception] = []
            started = threading.Event()

            def work() -> None:
                try:
                    busy.run("print('go', flush=True)\nwhile True: pass", on_output=lambda *_: started.set())
                except cellblock.CellblockError as error:
                    failures.append(error)

            thread = threading.Thread(target=work)
            thread.start()
            self.assertTrue(started.wait(60))
            os.kill(host["process"], signal.SIGKILL)
            thread.join(60)
            (failure,) = failures
            assert isinstance(failure, cellblock.ServerError)
            self.assertEqual((failure.status, failure.code), (502, "backend"))
            self.assertIn(ended, str(failure))
            with self.assertRaisesRegex(cellblock.ServerError, ended):
                reader.read("a.txt")
            # The cell is not run at all if it is sent before the server notices the loss.
            with self.assertRaisesRegex(cellblock.CellblockError, ended):
                idle.run("x").check()
            # They go on in sandboxes of their own server, as new ones do.
            with cellblock.Session(image=IMAGE) as new:
                for session in (busy, idle, reader, new):
                    self.assertEqual(session.run("1 + 1").value, 2)
            # And with the next host from then on.
            start()
            with cellblock.Session(image=IMAGE) as newer:
                self.assertEqual(newer.run("1 + 1").value, 2)
                until("one sandbox of the new host is in use", lambda: in_use() == 1)

    def test_a_server_uses_no_host_unless_it_is_asked_to(self) -> None:
        start()
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "cellblock.yaml"
            config.write_text(json.dumps({"listen": "127.0.0.1:0", "state": folder, "image": IMAGE}))
            serve = [PROGRAM, "serve", "--no-model", "--config", str(config)]
            with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
                try:
                    assert server.stdout is not None
                    url = server.stdout.readline().removeprefix("listening on ").strip()
                    with cellblock.Session(url) as session:
                        self.assertEqual(session.run("1 + 1").value, 2)
                        self.assertEqual(in_use(), 0)
                finally:
                    server.terminate()
            config.write_text(json.dumps({"sandbox_url": "http://127.0.0.1:1"}))
            refused = subprocess.run([*serve, "--warm"], capture_output=True, text=True)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn("`--warm` takes sandboxes of this machine", refused.stderr)


if __name__ == "__main__":
    unittest.main()
