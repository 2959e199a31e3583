"""E2B's clients of Python against Cellblock, as their documentation uses them."""

import asyncio
import tempfile
import time
import unittest
from pathlib import Path

from e2b import (
    AuthenticationException,
    BuildException,
    FileNotFoundException,
    SandboxNotFoundException,
    SandboxQuery,
    SandboxState,
    Template,
    Volume,
)
from e2b.exceptions import SandboxException
from e2b_code_interpreter import AsyncSandbox, Sandbox

PLOT = """
import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [1, 4, 9], label="squares")
plt.title("Growth")
plt.xlabel("time (s)")
plt.show()
"""


class Interpreter(unittest.TestCase):
    def setUp(self):
        self.sandbox = Sandbox.create(
            timeout=120, metadata={"suite": "sync"}, envs={"GREETING": "hello"}
        )
        self.addCleanup(self.sandbox.kill)

    def test_code_keeps_its_state_and_streams(self):
        self.sandbox.run_code("x = 20")
        lines = []
        execution = self.sandbox.run_code(
            "import os, sys\nprint(os.environ['GREETING'])\nprint('e', file=sys.stderr)\nx + 1",
            on_stdout=lines.append,
        )
        self.assertEqual(
            (execution.text, execution.logs.stdout, execution.logs.stderr),
            ("21", ["hello\n"], ["e\n"]),
        )
        self.assertEqual(lines[0].line, "hello\n")
        error = self.sandbox.run_code("raise ValueError('no')").error
        self.assertEqual((error.name, error.value), ("ValueError", "no"))

    def test_charts_and_tables_are_data(self):
        chart = self.sandbox.run_code(PLOT).results[0]
        self.assertTrue(chart.png)
        self.assertEqual(
            (chart.chart.type, chart.chart.title, chart.chart.x_unit),
            ("line", "Growth", "s"),
        )
        self.assertEqual(chart.chart.elements[0].points, [(1, 1), (2, 4), (3, 9)])
        table = self.sandbox.run_code(
            "import pandas as pd\npd.DataFrame({'a': [1, 2]})"
        ).results[0]
        self.assertEqual(table.data, {"a": [1, 2]})

    def test_contexts_are_apart(self):
        context = self.sandbox.create_code_context(language="python", cwd="/tmp")
        self.sandbox.run_code("x = 1", context=context)
        self.assertEqual(self.sandbox.run_code("x").error.name, "NameError")
        self.assertEqual(
            self.sandbox.run_code("import os; os.getcwd()", context=context).text,
            "/tmp",
        )
        self.sandbox.restart_code_context(context)
        self.assertEqual(
            self.sandbox.run_code("x", context=context).error.name, "NameError"
        )
        self.sandbox.remove_code_context(context)
        self.assertNotIn(
            context.id, [it.id for it in self.sandbox.list_code_contexts()]
        )
        self.assertEqual(
            "".join(
                self.sandbox.run_code("echo $((6 * 7))", language="bash").logs.stdout
            ),
            "42\n",
        )

    def test_files_and_directories(self):
        files = self.sandbox.files
        self.assertEqual(files.write("data/a.txt", "one").path, "/home/user/data/a.txt")
        files.write_files(
            [
                {"path": "/tmp/b.bin", "data": b"\x00\xff"},
                {"path": "data/c.txt", "data": "three"},
            ]
        )
        self.assertEqual(
            files.read("/tmp/b.bin", format="bytes"), bytearray(b"\x00\xff")
        )
        self.assertEqual([it.name for it in files.list("data")], ["a.txt", "c.txt"])
        self.assertTrue(files.make_dir("new/dir"))
        self.assertFalse(files.make_dir("new/dir"))
        self.assertEqual(
            files.rename("data/a.txt", "new/dir/a.txt").path, "/home/user/new/dir/a.txt"
        )
        self.assertEqual(files.get_info("new/dir/a.txt").size, 3)
        files.remove("new")
        self.assertFalse(files.exists("new/dir/a.txt"))
        with self.assertRaises(FileNotFoundException):
            files.read("new/dir/a.txt")
        watch = files.watch_dir("data", recursive=True)
        files.write("data/seen.txt", "x")
        events = []
        for _ in range(50):
            events += [(it.name, it.type.value) for it in watch.get_new_events()]
            if events:
                break
            time.sleep(0.1)
        self.assertIn(("seen.txt", "create"), events)
        watch.stop()

    def test_metadata_of_files_and_files_outside_of_the_home(self):
        files = self.sandbox.files
        written = files.write("labeled.txt", "x", metadata={"author": "me"})
        self.assertEqual(written.metadata, {"author": "me"})
        self.assertEqual(files.get_info("labeled.txt").metadata, {"author": "me"})
        self.assertIsNone(files.write("labeled.txt", "y").metadata)
        self.assertIsNone(files.get_info("labeled.txt").metadata)
        expected = self.sandbox.commands.run("cat /etc/passwd").stdout
        self.assertEqual(files.read("/etc/passwd"), expected)

    def test_signed_addresses_of_files(self):
        import urllib.request

        self.sandbox.files.write("public.txt", "shared")
        # The SDK puts the path of files at the root of the host; here it is below `/e2b`.
        url = self.sandbox.download_url(
            "public.txt", use_signature_expiration=60
        ).replace("/files?", "/e2b/files?")
        request = urllib.request.Request(
            url, headers={"E2b-Sandbox-Id": self.sandbox.sandbox_id}
        )
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(answer.read(), b"shared")

    def test_commands(self):
        commands = self.sandbox.commands
        result = commands.run(
            "echo $GREETING $X; pwd; echo problem >&2", envs={"X": "1"}, cwd="/tmp"
        )
        self.assertEqual(
            (result.stdout, result.stderr, result.exit_code),
            ("hello 1\n/tmp\n", "problem\n", 0),
        )
        from e2b import CommandExitException

        with self.assertRaises(CommandExitException) as failed:
            commands.run("echo half; exit 7")
        self.assertEqual(
            (failed.exception.exit_code, failed.exception.stdout), (7, "half\n")
        )
        handle = commands.run("cat", background=True, stdin=True)
        self.assertIn(handle.pid, [it.pid for it in commands.list()])
        connected = commands.connect(handle.pid)
        commands.send_stdin(handle.pid, "typed\n")
        for stdout, _, _ in connected:
            self.assertEqual(stdout, "typed\n")
            break
        commands.close_stdin(handle.pid)
        self.assertEqual(handle.wait().stdout, "typed\n")
        sleeping = commands.run("sleep 100", background=True)
        self.assertTrue(sleeping.kill())
        self.assertFalse(commands.kill(sleeping.pid))

    def test_a_terminal(self):
        from e2b.sandbox.commands.command_handle import PtySize

        terminal = self.sandbox.pty.create(PtySize(rows=24, cols=80), cwd="/tmp")
        self.sandbox.pty.resize(terminal.pid, PtySize(rows=30, cols=100))
        self.sandbox.pty.send_stdin(terminal.pid, b"stty size; exit 0\n")
        output = b""
        for _, _, data in terminal:
            output += data or b""
        self.assertIn(b"30 100", output)

    def test_life(self):
        info = self.sandbox.get_info()
        self.assertEqual(
            (info.metadata, info.state), ({"suite": "sync"}, SandboxState.RUNNING)
        )
        self.sandbox.set_timeout(300)
        self.assertGreater(self.sandbox.get_info().end_at, info.end_at)
        self.sandbox.run_code("kept = 1")
        self.assertTrue(self.sandbox.pause())
        self.assertFalse(self.sandbox.is_running())
        found = Sandbox.list(
            query=SandboxQuery(metadata={"suite": "sync"}, state=[SandboxState.PAUSED])
        ).next_items()
        self.assertIn(self.sandbox.sandbox_id, [it.sandbox_id for it in found])
        again = Sandbox.connect(self.sandbox.sandbox_id)
        self.assertEqual(again.run_code("kept").text, "1")
        self.assertEqual(len(self.sandbox.get_metrics()), 1)
        self.assertTrue(self.sandbox.kill())
        self.assertFalse(self.sandbox.kill())
        self.assertFalse(self.sandbox.is_running())
        with self.assertRaises(SandboxNotFoundException):
            self.sandbox.get_info()

    def test_forks(self):
        self.sandbox.run_code("x = [1]")
        self.sandbox.files.write("a.txt", "one")
        forks = self.sandbox.fork(count=2, timeout=60)
        for fork in forks:
            self.addCleanup(fork.kill)
            self.assertEqual(fork.run_code("x.append(2); x").text, "[1, 2]")
            self.assertEqual(fork.files.read("a.txt"), "one")
            self.assertEqual(fork.commands.run("echo $GREETING").stdout, "hello\n")
            self.assertEqual(fork.get_info().metadata, {"suite": "sync"})
        self.assertEqual(self.sandbox.run_code("x").text, "[1]")
        sleeping = self.sandbox.commands.run("sleep 100", background=True)
        with self.assertRaisesRegex(SandboxException, "409: .*sleep 100"):
            self.sandbox.fork()
        sleeping.kill()
        self.sandbox.kill()
        with self.assertRaises(SandboxNotFoundException):
            self.sandbox.fork()

    def test_snapshots(self):
        self.sandbox.run_code("x = 41")
        self.sandbox.files.write("a.txt", "one")
        full = self.sandbox.create_snapshot(name="full")
        self.addCleanup(Sandbox.delete_snapshot, full.snapshot_id)
        files = self.sandbox.create_snapshot(mode="filesystem")
        self.assertEqual((full.names, files.names), (["full:default"], []))
        listed = Sandbox.list_snapshots(sandbox_id=self.sandbox.sandbox_id).next_items()
        self.assertEqual(
            [it.snapshot_id for it in listed], [files.snapshot_id, full.snapshot_id]
        )
        self.assertEqual(
            [it.snapshot_id for it in Sandbox.list_snapshots(name="full").next_items()],
            [full.snapshot_id],
        )
        self.sandbox.kill()
        for snapshot, expected in [(full, "41"), (files, "0")]:
            with Sandbox.create(
                snapshot.snapshot_id, timeout=60, envs={"MORE": "m"}
            ) as sandbox:
                self.assertEqual(
                    sandbox.run_code("globals().get('x', 0)").text, expected
                )
                self.assertEqual(
                    sandbox.run_code(
                        "import os\nos.environ['GREETING'] + os.environ['MORE']"
                    ).text,
                    "hellom",
                )
                self.assertEqual(sandbox.files.read("a.txt"), "one")
        self.assertTrue(Sandbox.delete_snapshot(files.snapshot_id))
        self.assertFalse(Sandbox.delete_snapshot(files.snapshot_id))

    def test_pauses_that_keep_files_alone(self):
        self.sandbox.run_code("x = 1")
        self.sandbox.files.write("a.txt", "one")
        self.assertTrue(self.sandbox.pause(mode="filesystem"))
        self.assertFalse(self.sandbox.is_running())
        self.sandbox.connect()
        self.assertEqual(self.sandbox.run_code("'x' in globals()").text, "False")
        self.sandbox.run_code("x = 1")
        self.sandbox.pause()
        self.sandbox.connect(on_resume="reboot")
        self.assertEqual(self.sandbox.run_code("'x' in globals()").text, "False")
        self.assertEqual(self.sandbox.files.read("a.txt"), "one")

    def test_network_rules_templates_and_wrong_keys(self):
        self.sandbox.update_network({"deny_out": ["10.0.0.0/8"]})
        self.assertEqual(self.sandbox.get_info().network["deny_out"], ["10.0.0.0/8"])
        with self.assertRaisesRegex(SandboxException, "`a.example` cannot be reached"):
            self.sandbox.update_network({"allow_out": ["a.example"]})
        self.assertTrue(Template.exists("base"))
        self.assertFalse(Template.exists("other"))
        with self.assertRaisesRegex(AuthenticationException, "the API key is unknown"):
            Sandbox.create(api_key="wrong")


class Asynchronous(unittest.IsolatedAsyncioTestCase):
    async def test_code_commands_and_files(self):
        sandbox = await AsyncSandbox.create(timeout=120)
        try:
            self.assertEqual((await sandbox.run_code("6 * 7")).text, "42")
            await sandbox.files.write("a.txt", "x")
            seen = asyncio.Event()
            watch = await sandbox.files.watch_dir(
                ".", on_event=lambda event: seen.set()
            )
            result = await sandbox.commands.run("cat a.txt; echo new > b.txt")
            self.assertEqual(result.stdout, "x")
            await asyncio.wait_for(seen.wait(), 20)
            await watch.stop()
        finally:
            self.assertTrue(await sandbox.kill())


class Templates(unittest.TestCase):
    def test_a_template_starts_sandboxes_with_what_its_steps_made(self):
        messages = []
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "data.txt").write_text("copied")
            template = (
                Template(file_context_path=folder)
                .from_python_image("3")
                .set_workdir("/home/user/app")
                .copy("data.txt", ".", mode=0o600)
                .set_envs({"STAGE": "test"})
                .run_cmd('echo "$STAGE of $(cat data.txt)" | tee made.txt')
                .set_start_cmd("touch /tmp/up; sleep 1000", "test -e /tmp/up")
            )
            Template.build(
                template,
                "suite:v1",
                tags=["stable"],
                on_build_logs=lambda entry: messages.append(entry.message),
            )
        self.assertIn("test of copied", messages)
        self.assertTrue(Template.exists("suite"))
        self.assertFalse(Template.exists("suite:v2"))
        Template.assign_tags("suite:v1", ["v2"])
        Template.remove_tags("suite", ["stable"])
        self.assertEqual({it.tag for it in Template.get_tags("suite")}, {"v1", "v2"})
        with Sandbox.create("suite:v2", timeout=120) as sandbox:
            ran = sandbox.commands.run(
                "pwd; cat made.txt; stat -c %a data.txt /tmp/up; echo $STAGE"
            )
            expected = "/home/user/app\ntest of copied\n600\n"
            self.assertTrue(ran.stdout.startswith(expected), ran.stdout)
            self.assertTrue(ran.stdout.endswith("test\n"), ran.stdout)

    def test_a_step_that_fails_raises_with_its_output_in_the_log(self):
        messages = []
        template = Template().from_dockerfile("FROM python:3\nRUN echo said && exit 3")
        with self.assertRaisesRegex(BuildException, "exited with code 3"):
            Template.build(
                template,
                "broken",
                on_build_logs=lambda entry: messages.append(entry.message),
            )
        self.assertIn("said", messages)
        self.assertFalse(Template.exists("broken"))

    def test_files_of_a_volume_outlive_a_sandbox(self):
        volume = Volume.create("suite")
        mounts = {"/home/user/shared": volume}
        with Sandbox.create(timeout=120, volume_mounts=mounts) as sandbox:
            sandbox.commands.run("echo kept > shared/notes.txt")
        with Sandbox.create(timeout=120, volume_mounts=mounts) as sandbox:
            self.assertEqual(
                sandbox.commands.run("cat shared/notes.txt").stdout, "kept\n"
            )
        self.assertEqual([it.name for it in Volume.list()], ["suite"])
        self.assertTrue(Volume.destroy(volume.volume_id))


if __name__ == "__main__":
    unittest.main()
