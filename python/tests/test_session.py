"""Sessions on a Cellblock that this process starts. CELLBLOCK_EXECUTABLE names the program to test.

Needs pandas, polars and pyarrow.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import cellblock
import cellblock.aio
from cellblock._local import executable

#: The image of sessions of which only the process matters.
IMAGE = os.environ.get("CELLBLOCK_TEST_IMAGE")


class Sessions(unittest.TestCase):
    session: cellblock.Session

    @classmethod
    def setUpClass(cls) -> None:
        cls.session = cellblock.Session()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.session.close()

    def test_variables_live_from_cell_to_cell_and_values_come_back_as_python_has_them(self) -> None:
        self.session.run("x = 20 + 22").check()
        self.assertEqual(self.session.run("x").value, 42)
        for value in ("text", True, 2.5, [1, {"a": (2, None)}], b"\x00", 10**30, {"k": {1, 2}}):
            self.assertEqual(self.session.run(repr(value)).value, value)
        self.assertIsNone(self.session.run("None").value)
        nan = self.session.run("float('nan')").value
        self.assertNotEqual(nan, nan)
        self.assertEqual(self.session.run("object()").value, "<object object>")
        names = [variable["name"] for variable in self.session.variables()]
        self.assertIn("x", names)

    def test_with_a_warm_host_the_sandbox_is_the_hosts(self) -> None:
        self.session.run("1").check()
        if "CELLBLOCK_TEST_WARM" not in os.environ:
            return
        status = subprocess.run([executable(), "warm", "status", "--json"], capture_output=True, text=True, check=True)
        used = [host for host in json.loads(status.stdout)["hosts"] if host["running"] and host["image"] == "default"]
        self.assertTrue(used, status.stdout)

    def test_code_that_fails_is_a_result_until_it_is_checked(self) -> None:
        result = self.session.run("print('before')\n1 / 0")
        self.assertFalse(result.ok)
        self.assertEqual((result.outcome, result.stdout), ("raised", "before\n"))
        assert result.error is not None
        self.assertEqual((result.error["type"], result.error["line"]), ("ZeroDivisionError", 2))
        for use in (result.check, lambda: result.value, lambda: result.png):
            with self.assertRaises(cellblock.CellError) as raised:
                use()
            self.assertIs(raised.exception.result, result)
            self.assertIn("ZeroDivisionError: division by zero", str(raised.exception))

    def test_a_timeout_ends_the_cell_and_not_the_session(self) -> None:
        self.session.run("kept = 1")
        result = self.session.run("while True: pass", timeout=0.5)
        self.assertEqual(result.outcome, "interrupted")
        with self.assertRaisesRegex(cellblock.CellError, "timeout: the cell ran longer than its limit of 0.5 s"):
            result.check()
        self.assertEqual(self.session.run("kept").value, 1)

    def test_output_is_heard_while_the_cell_runs(self) -> None:
        heard: list[tuple[str, str]] = []
        code = "import sys\nprint('out', flush=True)\nprint('err', file=sys.stderr, flush=True)\n7"
        result = self.session.run(code, on_output=lambda stream, text: heard.append((stream, text)))
        self.assertEqual(result.value, 7)
        self.assertEqual("".join(text for stream, text in heard if stream == "stdout"), "out\n")
        self.assertEqual("".join(text for stream, text in heard if stream == "stderr"), "err\n")

    def test_another_thread_interrupts_a_cell(self) -> None:
        started = threading.Event()
        results: list[cellblock.Result] = []

        def work() -> None:
            code = "print('go', flush=True)\nwhile True: pass"
            results.append(self.session.run(code, on_output=lambda *_: started.set()))

        thread = threading.Thread(target=work)
        thread.start()
        self.assertTrue(started.wait(60))
        self.session.interrupt()
        thread.join(60)
        self.assertEqual(results[0].outcome, "interrupted")

    def test_figures_and_files_come_back_as_bytes(self) -> None:
        result = self.session.run(
            "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()\nopen('/tmp/output/note.txt', 'w').write('hello')\nNone"
        )
        self.assertEqual(result.png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual([(file.name, file.read()) for file in result.files], [("note.txt", b"hello")])
        with tempfile.TemporaryDirectory() as folder:
            saved = result.files[0].save(folder)
            self.assertEqual((saved.name, saved.read_bytes()), ("note.txt", b"hello"))
        with self.assertRaisesRegex(cellblock.CellblockError, "displayed no table, but figure"):
            result.table  # noqa: B018

    def test_files_go_in_and_out(self) -> None:
        self.session.write("in.txt", "é")
        self.assertEqual(self.session.run("open('in.txt', encoding='utf-8').read()").value, "é")
        self.session.run("open('/workspace/out.bin', 'wb').write(bytes(range(256)))").check()
        self.assertEqual(self.session.read("/workspace/out.bin"), bytes(range(256)))
        paths = [file["path"] for file in self.session.files()]
        self.assertIn("/workspace/in.txt", paths)
        with self.assertRaises(cellblock.ServerError) as missing:
            self.session.read("nowhere.txt")
        self.assertEqual((missing.exception.status, missing.exception.code), (404, "file_not_found"))

    def test_values_are_bound_to_names(self) -> None:
        self.session.put("setting", {"a": [1, None]})
        self.session.put("raw", b"\x00\x01")
        detected = self.session.put("rows", b"k;v\na;1\n", format="csv")
        self.assertEqual(detected, ["separator: semicolon (`;`)"])
        self.assertEqual(self.session.run("setting, bytes(raw), int(rows.v.sum())").value, ({"a": [1, None]}, b"\x00\x01", 1))
        with self.assertRaises(cellblock.CellblockError):
            self.session.put("never", float("nan"))

    def test_a_data_frame_goes_in_and_comes_back(self) -> None:
        import pandas

        frame = pandas.DataFrame({"city": ["Kyiv", None], "sum": [1.5, 2.5]}, index=pandas.Index([7, 8], name="id"))
        self.session.put("frame", frame)
        back = self.session.run("frame").value
        pandas.testing.assert_frame_equal(back, frame, check_dtype=False)
        table = self.session.run("frame").table
        self.assertEqual((table.rows, "sum" in table.columns), (2, True))
        series = self.session.run("frame['sum']").value
        self.assertEqual((list(series), list(series.index)), ([1.5, 2.5], [7, 8]))
        plain = self.session.run("import pandas\npandas.DataFrame({'a': [1]}, index=['x'])").value
        self.assertEqual((list(plain.index), plain.index.name), (["x"], None))

    def test_a_polars_frame_goes_in_and_comes_back(self) -> None:
        import polars

        frame = polars.DataFrame({"a": [1, 2]})
        self.session.put("frame", frame)
        back = self.session.run("import polars\npolars.DataFrame(frame)").value
        self.assertTrue(back.equals(frame))

    def test_sessions_of_a_process_share_its_server_and_are_apart(self) -> None:
        with cellblock.Session() as other:
            self.session.run("mine = 1")
            self.assertEqual(other.run("mine").outcome, "raised")
            with self.assertRaises(cellblock.CellblockError) as twice:
                cellblock.Session("http://127.0.0.1:1", image="core")
            self.assertIn("cannot be combined", str(twice.exception))
        other.close()
        with self.assertRaisesRegex(cellblock.CellblockError, "the session is closed"):
            other.run("1")

    def test_a_reset_forgets(self) -> None:
        with cellblock.Session() as session:
            session.run("x = 1")
            session.reset()
            self.assertEqual(session.run("x").outcome, "raised")

    def test_the_server_wants_the_key(self) -> None:
        url = self.session._server.url
        with self.assertRaises(cellblock.ServerError) as refused:
            cellblock.Session(url)
        self.assertEqual(refused.exception.status, 401)
        self.assertNotIn(str(self.session._server.key), repr(self.session) + repr(self.session._server))

    def test_asyncio_cancels_a_cell_and_goes_on(self) -> None:
        async def work() -> object:
            async with cellblock.aio.Session() as session:
                await session.run("x = 5")
                started = asyncio.Event()
                loop = asyncio.get_running_loop()

                def heard(stream: str, text: str) -> None:
                    loop.call_soon_threadsafe(started.set)

                endless = asyncio.create_task(
                    session.run(
                        "print('go', flush=True)\nwhile True: pass",
                        on_output=heard,
                    )
                )
                await asyncio.wait_for(started.wait(), 60)
                endless.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await endless
                return (await session.run("x")).value

        self.assertEqual(asyncio.run(work()), 5)


class Processes(unittest.TestCase):
    def test_a_killed_process_leaves_no_server(self) -> None:
        code = f"import cellblock, time\ns = cellblock.Session(image={IMAGE!r})\nprint(s._server.url, flush=True)\ntime.sleep(600)"
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            self.assertTrue(url.startswith("http://127.0.0.1:"), url)
            process.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                cellblock.Session(url)
            except cellblock.ServerError:
                time.sleep(0.05)
            except cellblock.CellblockError as error:
                # Until nothing listens, a connection may be cut.
                if "refused" in str(error):
                    return
                time.sleep(0.05)
        self.fail("the server still answers a minute after its process was killed")

    def test_a_missing_program_and_one_that_is_none_are_explained(self) -> None:
        for program, expected in (("/nowhere/cellblock", "start `/nowhere/cellblock`"), ("/bin/false", "exited with 1")):
            before = os.environ.get("CELLBLOCK_EXECUTABLE")
            os.environ["CELLBLOCK_EXECUTABLE"] = program
            try:
                with self.assertRaisesRegex(cellblock.CellblockError, expected):
                    cellblock.Session(image="another")
            finally:
                if before is None:
                    del os.environ["CELLBLOCK_EXECUTABLE"]
                else:
                    os.environ["CELLBLOCK_EXECUTABLE"] = before

    def test_an_unknown_image_is_an_error_that_names_it(self) -> None:
        with self.assertRaisesRegex(cellblock.CellblockError, "no-such-image"):
            cellblock.Session(image="no-such-image")

    def test_no_state_is_left(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            code = f"import cellblock\nwith cellblock.Session(image={IMAGE!r}) as s: print(s.run('1 + 1').value)"
            ran = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": folder}, capture_output=True, text=True)
            self.assertEqual((ran.stdout, ran.stderr), ("2\n", ""))
            self.assertEqual(list(Path(folder).iterdir()), [])

    def test_settings_of_another_server_are_not_used(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            state = Path(folder) / "state"
            others = {"CELLBLOCK_SERVE__STATE": str(state), "CELLBLOCK_SERVE__LISTEN": "192.0.2.1:1"}
            code = f"import cellblock\nwith cellblock.Session(image={IMAGE!r}) as s: print(s.run('1 + 1').value)"
            ran = subprocess.run([sys.executable, "-c", code], env={**os.environ, **others}, capture_output=True, text=True)
            self.assertEqual((ran.stdout, ran.stderr), ("2\n", ""))
            self.assertFalse(state.exists(), "a key in this state would close the server that uses it")


if __name__ == "__main__":
    unittest.main()
