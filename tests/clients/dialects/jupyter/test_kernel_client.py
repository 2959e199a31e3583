"""jupyter_kernel_client runs code in our kernels, and jupyter_server reads their binary messages."""

import json
import os
import threading
import time
import unittest

import requests
import websocket
from jupyter_kernel_client import JupyterKernelClient
from jupyter_server.services.kernels.connection.base import (
    deserialize_msg_from_ws_v1,
    serialize_msg_to_ws_v1,
)
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

URL = os.environ["CELLBLOCK_URL"] + "/jupyter"
KEY = os.environ["CELLBLOCK_KEY"]
SHOWN = (
    "clear_output",
    "display_data",
    "execute_result",
    "stream",
    "update_display_data",
)


class Kernels(unittest.TestCase):
    # One for all tests: the client takes ten seconds to close a connection, whatever the server does.
    @classmethod
    def setUpClass(cls):
        cls.kernel = JupyterKernelClient(server_url=URL, token=KEY)
        cls.kernel.start()
        cls.addClassCleanup(cls.kernel.stop)

    def setUp(self):
        self.kernel.restart()

    def test_what_code_writes_and_returns_comes_in_order(self):
        reply = self.kernel.execute(
            "print('é')\nimport sys; print('e', file=sys.stderr)\n[1, 2]"
        )
        outputs = sorted(
            reply["outputs"], key=lambda output: output.get("name", ""), reverse=True
        )
        result = {
            "output_type": "execute_result",
            "metadata": {},
            "data": {"text/plain": "[1, 2]"},
            "execution_count": 1,
        }
        streams = [
            {"output_type": "stream", "name": name, "text": text}
            for name, text in [("stdout", "é\n"), ("stderr", "e\n")]
        ]
        self.assertEqual((reply["status"], reply["execution_count"]), ("ok", 1))
        self.assertEqual(outputs, [*streams, result])
        again = self.kernel.execute("x = 5\nx * 2")
        self.assertEqual(
            (again["execution_count"], again["outputs"][0]["data"]),
            (2, {"text/plain": "10"}),
        )

    def test_tables_and_charts_have_the_forms_that_notebooks_show(self):
        code = "import pandas as pd; pd.DataFrame({'a<b': [1, 2]})"
        (table,) = self.kernel.execute(code)["outputs"]
        self.assertIn("<th>a&lt;b</th>", table["data"]["text/html"])
        self.assertIn("a<b", table["data"]["text/plain"])
        (chart,) = self.kernel.execute(
            "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"
        )["outputs"]
        self.assertTrue(chart["data"]["image/png"].startswith("iVBOR"))

    def notebook(self, *codes):
        """What a notebook shows of each cell, as nbclient puts it together from the kernel's messages."""
        notebook = new_notebook(cells=[new_code_cell(code) for code in codes])
        client = NotebookClient(notebook)
        # As it does for each cell that it runs itself.
        client.clear_before_next_output = False
        for index, cell in enumerate(notebook.cells):

            def take(message, cell=cell, index=index):
                if message["header"]["msg_type"] in SHOWN:
                    client.process_message(message, cell, index)

            self.kernel.execute_interactive(
                cell.source, output_hook=take, allow_stdin=False
            )
        text = [
            [it.get("text") or it["data"]["text/plain"] for it in cell.outputs]
            for cell in notebook.cells
        ]
        return text

    def test_outputs_are_cleared_as_in_a_notebook(self):
        loop = (
            "from IPython.display import clear_output\nfor i in range(100):\n"
            "    clear_output(wait=True)\n    print(i)\n    display(i)"
        )
        waits = "display(1)\nclear_output(wait=True)"
        gone = "display(1)\nclear_output()"
        self.assertEqual(self.notebook(loop, waits, gone), [["99\n", "99"], ["1"], []])

    def test_displays_are_updated_as_in_a_notebook(self):
        first = (
            "handle = display('start', display_id=True)\ndisplay('between')\n"
            "for i in range(100): handle.update(i)"
        )
        later = (
            "from IPython.display import update_display\n"
            "update_display('later', display_id=handle.display_id)"
        )
        self.assertEqual(self.notebook(first), [["99", "'between'"]])
        self.assertEqual(self.notebook(first, later), [["'later'", "'between'"], []])
        chart = (
            "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\nhandle = display(figure, display_id='chart')\n"
            "for i in range(3):\n    axes.plot([0, i])\n    handle.update(figure)\nplt.close(figure)"
        )
        (shown,) = self.notebook(chart)
        self.assertEqual(len(shown), 1)

    def test_an_error_stops_the_code_that_waits_behind_it(self):
        reply = self.kernel.execute("def f():\n    1 / 0\nf()")
        self.assertEqual(reply["status"], "error")
        (error,) = reply["outputs"]
        self.assertEqual(
            (error["ename"], error["evalue"]), ("ZeroDivisionError", "division by zero")
        )
        self.assertTrue(any("line 2" in line for line in error["traceback"]), error)

    def test_silent_code_has_no_number_and_expressions_are_evaluated(self):
        self.kernel.execute("x = 3", silent=True)
        reply = self.kernel.execute_interactive(
            "x",
            user_expressions={"y": "x + 1", "z": "nothing"},
            allow_stdin=False,
            silent=False,
        )
        found = reply["content"]["user_expressions"]
        self.assertEqual(
            found["y"], {"status": "ok", "data": {"text/plain": "4"}, "metadata": {}}
        )
        self.assertEqual(
            (found["z"]["status"], found["z"]["ename"]), ("error", "NameError")
        )
        self.assertEqual(reply["content"]["execution_count"], 1)

    def test_an_interrupt_ends_code_and_keeps_variables(self):
        self.kernel.execute("x = 1")
        threading.Timer(1, self.kernel.interrupt).start()
        began = time.monotonic()
        reply = self.kernel.execute("import time\ntime.sleep(60)")
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(reply["outputs"][-1]["ename"], "KeyboardInterrupt")
        self.assertEqual(
            self.kernel.execute("x")["outputs"][0]["data"]["text/plain"], "1"
        )

    def test_a_restart_forgets_variables(self):
        self.kernel.execute("x = 1")
        self.kernel.restart()
        reply = self.kernel.execute("x")
        self.assertEqual(
            (reply["outputs"][0]["ename"], reply["execution_count"]), ("NameError", 1)
        )

    def test_reading_input_is_an_error_and_does_not_hang(self):
        reply = self.kernel.execute("input('name? ')")
        self.assertEqual(reply["status"], "error")

    def test_the_kernel_is_listed_until_it_is_deleted(self):
        model = next(
            it for it in self.kernel.list_kernels() if it["id"] == self.kernel.id
        )
        self.assertEqual((model["name"], model["connections"]), ("python3", 1))
        self.assertEqual(self.kernel.kernel_info["language_info"]["name"], "python")
        headers = {"Authorization": f"token {KEY}"}
        address = f"{URL}/api/kernels/{requests.post(f'{URL}/api/kernels', headers=headers, timeout=30).json()['id']}"
        self.assertEqual(
            requests.delete(address, headers=headers, timeout=30).status_code, 204
        )
        self.assertEqual(
            requests.get(address, headers=headers, timeout=30).status_code, 404
        )


class Binary(unittest.TestCase):
    """The subprotocol whose messages are binary, read and written by jupyter_server's own code: jupyter_kernel_client 1.0.2 loses every message
    that it gets in this form (`KeyError: 'channel'`)."""

    def test_code_runs_and_the_subprotocol_is_chosen_only_if_it_is_offered(self):
        headers = {"Authorization": f"token {KEY}"}
        id = requests.post(f"{URL}/api/kernels", headers=headers, timeout=30).json()[
            "id"
        ]
        address = (
            f"{URL.replace('http', 'ws', 1)}/api/kernels/{id}/channels?token={KEY}"
        )
        plain = websocket.create_connection(address, timeout=60)
        self.assertIsNone(plain.getsubprotocol())
        plain.close()
        v1 = "v1.kernel.websocket.jupyter.org"
        socket = websocket.create_connection(
            address, timeout=60, subprotocols=["other", v1]
        )
        self.addCleanup(socket.close)
        self.assertEqual(socket.getsubprotocol(), v1)
        header = {
            "msg_id": "m1",
            "msg_type": "execute_request",
            "session": "s",
            "username": "u",
            "date": "",
            "version": "5.3",
        }
        parts = [header, {}, {}, {"code": "print('x'); 6 * 7", "silent": False}]
        socket.send_binary(
            serialize_msg_to_ws_v1(
                [json.dumps(part).encode() for part in parts], "shell"
            )
        )
        seen = {}
        while seen.get("status") != {"execution_state": "idle"}:
            _, (header, parent, _, content) = deserialize_msg_from_ws_v1(socket.recv())
            if json.loads(parent).get("msg_id") == "m1":
                seen[json.loads(header)["msg_type"]] = json.loads(content)
        self.assertEqual(seen["stream"], {"name": "stdout", "text": "x\n"})
        self.assertEqual(seen["execute_result"]["data"], {"text/plain": "42"})
        self.assertEqual(seen["execute_reply"]["status"], "ok")


if __name__ == "__main__":
    unittest.main()
