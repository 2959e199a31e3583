"""Commands and files of a session, on a Cellblock that this process starts. CELLBLOCK_EXECUTABLE names the program to test.

With CELLBLOCK_URL, they are those of a server instead.
"""

import asyncio
import os
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import cellblock
import cellblock.aio

URL, KEY = os.environ.get("CELLBLOCK_URL"), os.environ.get("CELLBLOCK_KEY")


class Commands(unittest.TestCase):
    session: cellblock.Session

    @classmethod
    def setUpClass(cls) -> None:
        cls.session = cellblock.Session(URL, key=KEY)
        cls.shell = cls.session.shell

    @classmethod
    def tearDownClass(cls) -> None:
        cls.session.close()

    shell: cellblock.Shell

    def test_a_command_has_its_exit_code_and_both_streams(self) -> None:
        done = self.shell.run(["sh", "-c", "printf 'a\\377'; echo b >&2; exit 3"])
        self.assertEqual((done.stdout, done.stderr, done.exit_code, done.ok), (b"a\xff", b"b\n", 3, False))
        merged = self.shell.run("echo a; echo b >&2; echo c", merged=True)
        self.assertEqual((merged.stdout, merged.stderr), (b"a\nb\nc\n", b""))
        self.assertEqual(self.shell.run("kill -TERM $$").exit_code, 143)
        self.assertEqual(self.shell.run(["missing-program"]).exit_code, 127)
        denied = self.shell.run(["/etc/passwd"])
        self.assertEqual((denied.exit_code, denied.stderr), (126, b"/etc/passwd: Permission denied\n"))

    def test_a_command_has_its_input_environment_and_folder(self) -> None:
        given = b"$HOME `id`\x00\xff\n" * 20_000
        self.assertEqual(self.shell.run(["cat"], input=given).stdout, given)
        self.assertEqual(self.shell.run(["cat"]).stdout, b"")
        done = self.shell.run(["sh", "-c", "echo $A; pwd"], env={"A": "x y"}, directory="/tmp")
        self.assertEqual(done.stdout, b"x y\n/tmp\n")
        with self.assertRaises(FileNotFoundError) as missing:
            self.shell.run(["true"], directory="nowhere")
        self.assertEqual(missing.exception.filename, "/workspace/nowhere")

    def test_words_of_a_megabyte_and_long_output_arrive_whole(self) -> None:
        spool = "ls /tmp/.cellblock-shell | wc -l"
        before = self.shell.run(spool).stdout
        words = ["x" * 65_536] * 16
        self.assertEqual(self.shell.run(["printf", "%s", *words]).stdout, b"x" * (1 << 20))
        done = self.shell.run("head -c 3000000 /dev/zero", max_output=2_000_000)
        self.assertEqual((len(done.stdout), done.truncated), (2_000_000, True))
        self.assertEqual(self.shell.run(spool).stdout, before)

    def test_a_timeout_kills_the_command_and_its_children(self) -> None:
        done = self.shell.run("echo begun; sleep 1212 & sleep 1212", timeout=0.5)
        self.assertEqual((done.timed_out, done.stdout, done.exit_code), (True, b"begun\n", 137))
        self.assertEqual(self.shell.run("ps ax | grep -c '[s]leep 1212'").stdout, b"0\n")
        with self.assertRaises(ValueError):
            self.shell.run("true", timeout=0)

    def test_a_program_in_the_background_outlives_its_command(self) -> None:
        self.shell.run("sleep 2323 >/dev/null 2>&1 &")
        self.assertEqual(self.shell.run("ps ax | grep -c '[s]leep 2323'").stdout, b"1\n")

    def test_commands_run_beside_each_other_and_beside_cells(self) -> None:
        go = threading.Event()

        def cell() -> None:
            code = "import pathlib, time\nprint('go', flush=True)\nwhile not pathlib.Path('stop').exists(): time.sleep(0.01)"
            self.session.run(code, on_output=lambda *_: go.set())

        thread = threading.Thread(target=cell)
        thread.start()
        self.assertTrue(go.wait(60))
        start = time.monotonic()
        with ThreadPoolExecutor(20) as threads:
            done = list(threads.map(lambda n: self.shell.run(f"sleep 0.5; echo {n}").stdout, range(20)))
        self.assertEqual(done, [f"{n}\n".encode() for n in range(20)])
        self.assertLess(time.monotonic() - start, 8)
        self.shell.run(["touch", "stop"])
        thread.join(60)

    def test_an_answer_is_repeated_if_its_log_has_lost_it(self) -> None:
        # The sandbox keeps the first 16 MiB of answers and the last 256 KiB; each of these is of 11 KB.
        text = b"y" * 4096
        both = ["sh", "-c", "tee /dev/stderr"]
        with ThreadPoolExecutor(8) as threads:
            for done in threads.map(lambda _: self.shell.run(both, input=text), range(1600)):
                self.assertEqual((done.stdout, done.stderr), (text, text))
        late = self.shell.start(both, input=text)
        for _ in range(40):
            self.shell.run(both, input=text)
        self.assertEqual(late.result().stdout, text)

    def test_files_are_read_and_written_with_the_rights_of_the_code(self) -> None:
        content = bytes(range(256)) * 4000
        self.shell.write("a/b/c.bin", content)
        self.assertEqual(self.shell.read("/workspace/a/b/c.bin"), content)
        self.assertEqual(self.session.read("a/b/c.bin"), content)
        self.assertIn(b"root", self.shell.read("/etc/passwd"))
        self.shell.run("ln -s a/b/c.bin link; printf x > locked; chmod 0 locked; mkfifo fifo")
        self.shell.write("link", "through")
        self.assertEqual(self.shell.read("a/b/c.bin"), b"through")
        for kind, path in (
            (FileNotFoundError, "nowhere"),
            (IsADirectoryError, "a"),
            (PermissionError, "locked"),
            (NotADirectoryError, "locked/below"),
            (OSError, "fifo"),
        ):
            with self.subTest(path), self.assertRaises(kind) as failed:
                self.shell.read(path)
            self.assertEqual(failed.exception.filename, path)
        for kind, path in ((IsADirectoryError, "a"), (OSError, "/etc/x"), (NotADirectoryError, "link/below")):
            with self.subTest(path), self.assertRaises(kind):
                self.shell.write(path, b"")
        with self.assertRaisesRegex(OSError, "7 bytes, more than 3"):
            self.shell.read("link", max_bytes=3)

    def test_commands_work_again_after_code_killed_what_runs_them(self) -> None:
        with self.assertRaisesRegex(cellblock.CellblockError, "The next command starts it again"):
            self.shell.run("pkill -f cellblock.Shell; sleep 60")
        self.assertEqual(self.shell.run("echo back").stdout, b"back\n")
        self.session.reset()
        self.assertEqual(self.shell.run("echo again").stdout, b"again\n")

    def test_a_closed_session_runs_nothing(self) -> None:
        with cellblock.Session(URL, key=KEY) as session:
            shell = session.shell
            self.assertTrue(session.alive)
        self.assertFalse(session.alive)
        with self.assertRaises(cellblock.CellblockError):
            shell.run("true")

    def test_another_client_continues_a_session_with_its_background(self) -> None:
        self.shell.run("echo kept > kept; sleep 3434 >/dev/null 2>&1 &")
        server = self.session._server
        other = cellblock.Session(server.url, key=server.key, id=self.session.id)
        self.assertEqual(other.shell.run("cat kept; ps ax | grep -c '[s]leep 3434'").stdout, b"kept\n1\n")
        self.assertEqual(self.shell.run("echo still").stdout, b"still\n")
        with self.assertRaises(cellblock.ServerError) as unknown:
            cellblock.Session(server.url, key=server.key, id="sess_0")
        self.assertEqual(unknown.exception.status, 404)


class AsyncCommands(unittest.IsolatedAsyncioTestCase):
    async def test_a_canceled_task_kills_its_command(self) -> None:
        async with cellblock.aio.Session(URL, key=KEY) as session:
            task = asyncio.create_task(session.shell.run("touch begun; sleep 4545"))
            while (await session.shell.run("test -e begun")).exit_code:
                await asyncio.sleep(0.02)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual((await session.shell.run("ps ax | grep -c '[s]leep 4545'")).stdout, b"0\n")

    async def test_more_commands_wait_than_asyncio_has_threads(self) -> None:
        async with cellblock.aio.Session(URL, key=KEY) as session:
            waiting = [asyncio.create_task(session.shell.run("sleep 60")) for _ in range(40)]
            await asyncio.sleep(1)
            await session.shell.write("a.txt", "x")
            self.assertEqual(await session.shell.read("a.txt"), b"x")
            for task in waiting:
                task.cancel()
            done = await asyncio.gather(*waiting, return_exceptions=True)
            self.assertTrue(all(isinstance(it, asyncio.CancelledError) for it in done))


if __name__ == "__main__":
    unittest.main()
