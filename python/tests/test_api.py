"""Everything that a server has, on a Cellblock that this process starts. CELLBLOCK_EXECUTABLE names the program to test.

With CELLBLOCK_URL and CELLBLOCK_KEY, it is a server instead. The examples of the README run on it, too.
"""

import asyncio
import contextlib
import io
import os
import re
import secrets
import tempfile
import threading
import unittest
from pathlib import Path

import cellblock
import cellblock.aio

PACKAGE = Path(__file__).resolve().parents[1]
URL, KEY = os.environ.get("CELLBLOCK_URL"), os.environ.get("CELLBLOCK_KEY")
SKILL = "---\nname: {name}\ndescription: Counts. Use it to count.\n---\n\nCount.\n"


def setUpModule() -> None:
    # As long as this session lives, those of the tests use the same server.
    unittest.addModuleCleanup(cellblock.Session(URL, key=KEY).close)


def is_missing(error: cellblock.ServerError) -> bool:
    return error.status == 404


class Branches(unittest.TestCase):
    """States of a session, which cannot be saved while programs run beside its cells."""

    def setUp(self) -> None:
        self.session = cellblock.Session(URL, key=KEY)
        self.addCleanup(self.session.close)

    def test_a_rollback_returns_to_a_checkpoint(self) -> None:
        self.session.run("state = 1").check()
        made = self.session.checkpoint("one")
        self.assertEqual(made["name"], "one")
        self.session.run("state = 2").check()
        self.assertEqual(self.session.rollback("one")["checkpoint"]["id"], made["id"])
        self.assertEqual(self.session.run("state").value, 1)
        self.assertIn(made["id"], [it["id"] for it in self.session.checkpoints()])
        self.assertIn("rolled_back", [it["event"] for it in self.session.events()])
        self.session.delete_checkpoint("one")
        with self.assertRaises(cellblock.ServerError):
            self.session.rollback("one")

    def test_a_try_counts_only_when_it_is_kept(self) -> None:
        self.session.run("tried = 0").check()
        attempt = self.session.try_run("tried = 1")
        self.assertTrue(attempt.undecided)
        self.assertEqual([(it["name"], it["change"]) for it in attempt.changes["variables"]], [("tried", "changed")])
        attempt.discard()
        self.assertEqual(self.session.run("tried").value, 0)
        self.session.try_run("tried = 2").keep()
        self.assertEqual(self.session.run("tried").value, 2)

    def test_forks_are_sessions_with_the_same_variables(self) -> None:
        parent = self.session
        parent.run("root = 'r'").check()
        forks = parent.fork(2)
        try:
            for number, fork in enumerate(forks):
                self.assertEqual(fork.run(f"root += '{number}'; root").value, f"r{number}")
            self.assertEqual(parent.run("root").value, "r")
        finally:
            for fork in forks:
                fork.close()
        self.assertFalse(forks[0].alive)
        self.assertTrue(parent.alive)


class Operations(unittest.TestCase):
    session: cellblock.Session
    client: cellblock.Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.session = cellblock.Session(URL, key=KEY)
        cls.client = cls.session.client

    @classmethod
    def tearDownClass(cls) -> None:
        cls.session.close()

    def test_cells_of_other_languages_and_their_records(self) -> None:
        result = self.session.run("x=5; echo $((x + 2))", language="bash")
        self.assertEqual(result.stdout, "7\n")
        self.assertFalse(self.session.run("def", dry_run=True).ok)
        self.assertIn("x=5; echo $((x + 2))", [it.data["code"] for it in self.session.cells()])
        number = result.data["cell"]
        self.assertEqual(self.session.cell(number).stdout, "7\n")
        with self.assertRaisesRegex(cellblock.ServerError, "ruby"):
            self.session.run("1", language="ruby")

    def test_events_are_streamed_and_resumed_after_a_lost_connection(self) -> None:
        name = secrets.token_hex(8)
        events = self.session.stream("print('a', flush=True)\n1", stream_id=name)
        first = next(events)
        self.assertEqual(first["type"], "cell.started")
        events.close()  # type: ignore[attr-defined]
        rest = list(self.session.resume(name, starting_after=first["sequence_number"]))
        self.assertEqual(rest[-1]["type"], "cell.done")
        self.assertEqual(self.session.result(rest[-1]["cell"]).value, 1)
        self.assertEqual("".join(it["text"] for it in rest if it["type"] == "cell.stdout"), "a\n")

    def test_variables_are_paged_and_have_an_origin(self) -> None:
        self.session.run("import pandas\nnumbers = pandas.DataFrame({'n': range(100)})", producer="numbers.py").check()
        page = self.session.variable("numbers", rows=10, page=-1)["page"]
        assert page is not None
        self.assertEqual(page["pages"], 10)
        self.assertEqual(self.session.origin("numbers")["producer"], "numbers.py")
        table = self.session.run("numbers").table
        self.assertEqual(table.page(1, 2, sort=0, descending=True), [[98], [97]])
        shown = self.client.rows(table.data["table"]["sha256"], limit=1)
        self.assertEqual((shown["total_rows"], len(shown["rows"])), (100, 1))
        self.assertEqual(self.client.rows_as("csv", table.data["table"]["sha256"], limit=1).split(), [b"n", b"0"])
        self.session.put_artifact("again", table.data["table"]["sha256"], format="parquet")
        self.assertEqual(self.session.run("len(again)").value, 100)
        self.assertIn("<table>", self.session.run("numbers")._repr_mimebundle_()["text/html"])

    def test_files_are_removed(self) -> None:
        self.session.write("gone.txt", "x")
        self.session.remove("gone.txt")
        self.assertNotIn("/workspace/gone.txt", [it["path"] for it in self.session.files()])

    def test_processes_are_read_fed_and_ended(self) -> None:
        cat = self.session.start_process(["cat"], stdin=True)
        self.assertEqual(cat.status()["state"], "running")
        cat.send("one\n")
        cat.send(b"two\n", close=True)
        self.assertEqual("".join(cat), "one\ntwo\n")
        self.assertEqual((cat.wait()["state"], cat.wait()["exit_code"]), ("exited", 0))
        sleeper = self.session.start_process(["sleep", "1000"])
        self.assertEqual(sleeper.wait(0.01)["state"], "running")
        sleeper.signal("SIGKILL")
        self.assertEqual(sleeper.wait()["signal"], "SIGKILL")
        self.assertIn(sleeper.id, [it.id for it in self.session.processes()])
        self.assertTrue(self.session.usage()["sandbox"])

    def test_a_terminal_has_a_size_and_ends_with_its_program(self) -> None:
        shell = self.session.start_process(["sh"], terminal=(24, 80))
        with shell.terminal() as terminal:
            terminal.resize(30, 100)
            terminal.send("stty size\r")
            shown = b""
            for piece in terminal:
                shown += piece
                if b"30 100" in shown and b"exit" not in shown:
                    terminal.send("exit 7\r")
            assert terminal.end is not None
            self.assertEqual((terminal.end["state"], terminal.end["exit_code"]), ("exited", 7))
            self.assertEqual(terminal.read(), b"")
        with self.assertRaises(cellblock.ServerError):
            self.session.start_process(["true"]).terminal()

    def test_a_closed_terminal_wakes_its_reader_and_leaves_the_program(self) -> None:
        shell = self.session.start_process(["cat"], terminal=(24, 80))
        terminal = shell.terminal()
        errors: list[Exception] = []

        def read() -> None:
            try:
                terminal.read()
            except cellblock.CellblockError as error:
                errors.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        terminal.close()
        reader.join(60)
        self.assertEqual(len(errors), 1)
        with self.assertRaisesRegex(cellblock.CellblockError, "it is closed"):
            terminal.send("x")
        self.assertEqual(shell.status()["state"], "running")
        shell.signal("SIGKILL")

    def test_volumes_outlive_sessions(self) -> None:
        name = f"v{secrets.token_hex(4)}"
        with self.client.session(volume=name) as first:
            first.run("open('/workspace/volume/a', 'w').write('kept')").check()
        try:
            self.assertEqual(self.client.volume(name)["files"], 1)
            self.assertIn(name, [it["name"] for it in self.client.volumes()])
            with self.client.session(volume=name, volume_access="read") as second:
                self.assertEqual(second.run("open('/workspace/volume/a').read()").value, "kept")
        finally:
            self.client.delete_volume(name)
        with self.assertRaises(cellblock.ServerError) as gone:
            self.client.volume(name)
        self.assertTrue(is_missing(gone.exception))

    def test_runs_are_replayed_and_exported(self) -> None:
        with self.client.session() as session:
            session.run("6 * 7").check()
            run = self.client.runs(session=session.id)[0]
        self.assertEqual(self.client.run(run["id"])["outcome"], "completed")
        self.assertEqual(self.client.replay(run["id"])["result"], "equal")
        self.assertEqual(self.client.export_run(run["id"])["runs"][-1]["code"], "6 * 7")

    def test_skills_are_uploaded_in_versions_and_found_by_code(self) -> None:
        name = f"count-{secrets.token_hex(4)}"
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / name
            folder.mkdir()
            (folder / "SKILL.md").write_text(SKILL.format(name=name))
            skill = self.client.add_skill(folder)
            self.client.add_skill_version(skill["id"], folder)
        versions = self.client.skill_versions(skill["id"])
        self.assertEqual(sorted(it["version"] for it in versions), ["1", "2"])
        self.client.set_skill_version(skill["id"], "2")
        self.assertEqual(self.client.skill(skill["id"])["default_version"], "2")
        self.assertEqual(self.client.skill_version(skill["id"], "1")["version"], "1")
        self.assertEqual(self.client.skill_content(skill["id"])[:2], b"PK")
        with self.client.session(skills=[{"type": "skill_reference", "skill_id": skill["id"]}]) as session:
            self.assertIn("Count.", session.run(f"open('/skills/{name}/SKILL.md').read()").value)
        self.client.delete_skill(skill["id"], version="1")
        self.client.delete_skill(skill["id"])
        self.assertNotIn(skill["id"], [it["id"] for it in self.client.skills()])
        with self.assertRaisesRegex(cellblock.CellblockError, "a folder with a SKILL.md"):
            self.client.add_skill("/nowhere")

    def test_toolsets_have_their_own_operations(self) -> None:
        with self.client.session(toolset="workbench") as workbench:
            mounted = workbench.mount("sales.csv", "k,v\na,1\n")
            self.assertEqual([it["path"] for it in workbench.datasets()], [mounted["path"]])
            self.assertIn("sandbox_exec", [it["name"] for it in workbench.tools()])
            answer = workbench.call_tool("sandbox_exec", {"command": ["head", "-1", mounted["path"]]})
            self.assertIn("k,v", str(answer))
        with self.client.session(toolset="derivation") as derivation:
            recorded = derivation.record([{"a": 1}], tool="fetch")
            self.assertEqual([it["alias"] for it in derivation.aliases()], [recorded["alias"]])

    def test_the_server_describes_itself_and_the_key(self) -> None:
        self.assertIn(self.session.id, [it["id"] for it in self.client.sessions()])
        self.assertEqual(self.session.describe()["toolset"], "interpreter")
        self.assertEqual(self.client.own_key()["object"], "key")
        self.assertEqual(self.client.connectors(), [])
        self.assertEqual(self.client.decisions(session=self.session.id), [])
        with self.assertRaises(cellblock.ServerError) as refused:
            self.client.keys()
        self.assertEqual(refused.exception.code, "not_an_administrator")
        self.assertEqual(self.session.ports(), [])
        self.assertEqual(self.client.execute("print(6 * 7)")["stdout"], "42\n")

    def test_asyncio_branches_streams_and_starts_programs(self) -> None:
        async def work() -> None:
            server = self.session._server
            async with cellblock.aio.Client(f"{server.url}/v1", key=server.key).session() as session:
                await session.run("x = 1")
                await session.checkpoint("start")
                (fork,) = await session.fork()
                self.assertEqual((await fork.run("x")).value, 1)
                await fork.close()
                attempt = await session.try_run("x = 2")
                await attempt.discard()
                kinds = [event["type"] async for event in session.stream("x")]
                self.assertEqual((kinds[0], kinds[-1]), ("cell.started", "cell.done"))
                started = asyncio.Event()

                async def endless() -> None:
                    async for event in session.stream("print('go', flush=True)\nwhile True: pass"):
                        if event["type"] == "cell.stdout":
                            started.set()

                task = asyncio.create_task(endless())
                await started.wait()
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertEqual((await session.run("x")).value, 1)
                shell = await session.start_process(["sh", "-c", "read line; echo got $line"], terminal=(24, 80))
                async with await shell.terminal() as terminal:
                    await terminal.send("it\r")
                    shown = b"".join([piece async for piece in terminal])
                self.assertIn(b"got it", shown)
                self.assertEqual((await shell.wait())["exit_code"], 0)
                self.assertEqual(len(await session.client.runs(session=session.id)), 5)

        asyncio.run(work())


class Examples(unittest.TestCase):
    def run_blocks(self, page: Path, names: dict[str, object], at_least: int) -> None:
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), at_least)
        server = self.session._server
        for block in blocks:
            # An example that begins with a session of its own starts one; the others use this one.
            names.setdefault("session", self.session)
            mine = block.replace('"http://127.0.0.1:8080"', f"{server.url!r}, key={server.key!r}")
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(mine, page.name, "exec"), names)
            if names["session"] is not self.session and not names["session"].id:  # type: ignore[attr-defined]
                del names["session"]
            expected = re.findall(r"print\(.*\)  # (.*)$", block, re.M)
            self.assertEqual([line for line in expected if line not in printed.getvalue()], [], printed.getvalue())

    def setUp(self) -> None:
        self.session = cellblock.Session(URL, key=KEY)
        self.addCleanup(self.session.close)

    def test_the_examples_of_the_readme_run(self) -> None:
        self.run_blocks(PACKAGE / "README.md", {}, 2)

    def test_the_examples_of_the_guide_run(self) -> None:
        self.run_blocks(PACKAGE.parent / "docs/guides/python.md", {}, 6)


if __name__ == "__main__":
    unittest.main()
