"""Open WebUI's own code makes tools of our operations, calls them, and relays its users' file browser and terminal."""

import importlib
import json
import os
import types
import unittest

import fastapi
import open_webui_client
from fastapi.testclient import TestClient

relay = importlib.import_module("open_webui.routers.terminals")
terminals = importlib.import_module("open_webui.utils.terminals")
tools = importlib.import_module("open_webui.utils.tools")

URL = os.environ["CELLBLOCK_URL"] + "/open-terminal"
KEY = os.environ["CELLBLOCK_KEY"]
CONNECTION = {
    "id": "cellblock",
    "name": "Cellblock",
    "url": URL,
    "key": KEY,
    "auth_type": "bearer",
    "enabled": True,
}
open_webui_client.connections.append(CONNECTION)


def request():
    state = types.SimpleNamespace(redis=None, TERMINAL_SERVERS=[])
    return types.SimpleNamespace(app=types.SimpleNamespace(state=state), cookies={})


async def offered(chat):
    metadata = {"chat_id": chat, "terminal_id": "cellblock"}
    made = await tools.get_terminal_tools(
        request(), "cellblock", open_webui_client.User(), {"__metadata__": metadata}
    )
    return made


class Tools(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.tools, self.prompt = await offered(self.id())

    async def call(self, tool, **arguments):
        answer, _headers = await self.tools[tool]["callable"](**arguments)
        return answer

    async def test_every_operation_is_a_tool_with_a_schema_that_models_take(self):
        expected = {
            "run_python",
            "run_command",
            "list_processes",
            "get_process_status",
            "send_process_input",
            "kill_process",
            "list_files",
            "read_file",
            "display_file",
            "write_file",
            "replace_file_content",
            "grep_search",
            "glob_search",
            "search_files",
            "read_user_terminal",
            "send_user_terminal_input",
        }
        self.assertEqual(set(self.tools), expected)
        for name, tool in self.tools.items():
            self.assertGreater(len(tool["spec"]["description"]), 15, name)
            for argument, schema in tool["spec"]["parameters"]["properties"].items():
                self.assertIn(
                    schema["type"],
                    ("string", "number", "integer", "boolean", "array", "object"),
                    (name, argument),
                )
                self.assertTrue(schema.get("description"), (name, argument))
        self.assertIn(
            "The current working directory is: /workspace",
            self.tools["run_command"]["spec"]["description"],
        )
        self.assertEqual(
            self.tools["run_python"]["spec"]["parameters"]["required"], ["code"]
        )
        self.assertIn("run_python", self.prompt)

    async def test_python_keeps_its_variables_and_a_picture_reaches_the_model(self):
        await self.call("run_python", code="import matplotlib.pyplot as plt; x = 6")
        answer = await self.call(
            "run_python", code="plt.plot([1, x]); plt.title('line'); plt.show()\nx * 7"
        )
        self.assertIn("42", answer["output"])
        picture = await self.call("read_file", path=answer["images"][0]["path"])
        self.assertTrue(picture.startswith("data:image/png;base64,iVBOR"), picture[:40])
        shown = await self.call("display_file", path=answer["images"][0]["path"])
        self.assertTrue(shown["exists"])
        failed = await self.call("run_python", code="\n1 / 0")
        self.assertEqual(failed["error"]["line"], 2)

    async def test_commands_and_files_share_the_sandbox_of_the_chat(self):
        await self.call("write_file", path="data/a.csv", content="n\n1\n2\n")
        ran = await self.call("run_command", command="wc -l < data/a.csv", wait=60)
        self.assertEqual(
            (ran["status"], ran["output"][0]["data"].strip()), ("done", "3")
        )
        found = await self.call(
            "grep_search", query="^2$", include=["*.csv"], case_insensitive=True
        )
        self.assertEqual(found["matches"][0]["line"], 3)
        replaced = [{"target": "2\n", "replacement": "5\n"}]
        await self.call(
            "replace_file_content", path="data/a.csv", replacements=replaced
        )
        answer = await self.call(
            "run_python",
            code="import pandas as pd; int(pd.read_csv('data/a.csv').n.sum())",
        )
        self.assertIn("6", answer["output"])
        started = await self.call("run_command", command="cat", wait=0)
        await self.call(
            "send_process_input", process_id=started["id"], input="typed\\n"
        )
        await self.call("send_process_input", process_id=started["id"], input="\\x04")
        ended = await self.call("get_process_status", process_id=started["id"], wait=30)
        self.assertEqual(
            (ended["status"], ended["output"][0]["data"]), ("done", "typed\n")
        )
        other, _ = await offered("another chat")
        listing, _ = await other["list_files"]["callable"]()
        self.assertEqual(listing["entries"], [])

    async def test_a_mistake_is_told_in_words(self):
        # The client gives models what it raises here.
        for tool, arguments, words in [
            ("read_file", {"path": "nothing"}, "file not found: /workspace/nothing"),
            ("run_command", {"command": "true", "wait": 1000}, "between 0 and 300"),
            ("kill_process", {"process_id": "p77"}, "no command `p77`"),
        ]:
            answer = await self.call(tool, **arguments)
            self.assertIn(words, str(answer))

    async def test_instructions_in_the_home_directory_are_found(self):
        await self.call("write_file", path="/workspace/AGENTS.md", content="Be brief.")
        metadata = {"chat_id": self.id(), "terminal_id": "cellblock"}
        read = await terminals.get_terminal_agents_md(
            request(), open_webui_client.User(), metadata
        )
        self.assertEqual(read, "# AGENTS.md\n\nBe brief.")


class Relay(unittest.TestCase):
    """What the browser of a user does, by way of Open WebUI's own routes."""

    def setUp(self):
        app = fastapi.FastAPI()
        app.include_router(relay.router, prefix="/api/v1/terminals")
        self.browser = TestClient(app)
        self.addCleanup(self.browser.close)
        self.base = f"/api/v1/terminals/cellblock/chats/{self.id()}"

    def test_the_file_browser_uploads_lists_and_shows(self):
        upload = {"file": ("a.txt", b"text")}
        answer = self.browser.post(
            f"{self.base}/files/upload",
            params={"directory": "/workspace"},
            files=upload,
        )
        self.assertEqual(answer.json(), {"path": "/workspace/a.txt", "size": 4})
        listing = self.browser.get(
            f"{self.base}/files/list", params={"directory": "/workspace"}
        ).json()
        self.assertEqual([entry["name"] for entry in listing["entries"]], ["a.txt"])
        shown = self.browser.get(
            f"{self.base}/files/view", params={"path": "/workspace/a.txt"}
        )
        self.assertEqual(
            (shown.content, shown.headers["content-type"]), (b"text", "text/plain")
        )
        zipped = self.browser.post(
            f"{self.base}/files/archive", json={"paths": ["/workspace/a.txt"]}
        )
        self.assertTrue(zipped.content.startswith(b"PK"), zipped.content[:100])

    def test_a_notebook_runs_cell_by_cell(self):
        code = {"cell_type": "code", "metadata": {}, "outputs": []}
        cells = [code | {"source": "x = 6"}, code | {"source": "x * 7"}]
        file = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        path = "/workspace/a.ipynb"
        written = {"path": path, "content": json.dumps(file)}
        self.browser.post(f"{self.base}/files/write", json=written)
        opened = self.browser.post(f"{self.base}/notebooks", json={"path": path})
        notebook = f"{self.base}/notebooks/{opened.json()['id']}"
        ran = [
            self.browser.post(f"{notebook}/execute", json={"cell_index": index}).json()
            for index in (0, 1)
        ]
        self.assertEqual([it["execution_count"] for it in ran], [1, 2])
        self.assertEqual(ran[1]["outputs"][0]["data"], {"text/plain": "42"})
        self.assertEqual(self.browser.delete(notebook).json(), {"status": "stopped"})

    def test_the_terminal_shows_what_is_typed(self):
        made = self.browser.post(f"{self.base}/api/terminals").json()
        path = f"/api/v1/terminals/cellblock/api/terminals/{made['id']}"
        with self.browser.websocket_connect(path) as socket:
            socket.send_json(
                {
                    "type": "auth",
                    "token": "a session of Open WebUI",
                    "chat_id": self.id(),
                }
            )
            socket.send_json({"type": "resize", "cols": 100, "rows": 30})
            socket.send_bytes(b"echo $((6 * 7))\n")
            seen = b""
            while b"42\r\n" not in seen:
                seen += socket.receive_bytes()


if __name__ == "__main__":
    unittest.main()
