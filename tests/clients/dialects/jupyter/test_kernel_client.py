"""jupyter_kernel_client runs code in our kernels, in both forms of messages."""

import os
import threading
import time
import unittest

import requests
from jupyter_kernel_client import JupyterKernelClient
from jupyter_kernel_client.wsclient import JupyterSubprotocol

URL = os.environ["CELLBLOCK_URL"] + "/jupyter"
KEY = os.environ["CELLBLOCK_KEY"]


def kernel(form=JupyterSubprotocol.DEFAULT, token=KEY):
    return JupyterKernelClient(server_url=URL, token=token, client_kwargs={"subprotocol": form})


class Kernels(unittest.TestCase):
    form = JupyterSubprotocol.DEFAULT

    def setUp(self):
        self.kernel = kernel(self.form)
        self.kernel.start()
        self.addCleanup(self.kernel.stop)

    def test_what_code_writes_and_returns_comes_in_order(self):
        reply = self.kernel.execute("print('é')\nimport sys; print('e', file=sys.stderr)\n[1, 2]")
        outputs = sorted(reply["outputs"], key=lambda output: output.get("name", ""), reverse=True)
        result = {"output_type": "execute_result", "metadata": {}, "data": {"text/plain": "[1, 2]"}, "execution_count": 1}
        streams = [{"output_type": "stream", "name": name, "text": text} for name, text in [("stdout", "é\n"), ("stderr", "e\n")]]
        self.assertEqual((reply["status"], reply["execution_count"]), ("ok", 1))
        self.assertEqual(outputs, [*streams, result])
        again = self.kernel.execute("x = 5\nx * 2")
        self.assertEqual((again["execution_count"], again["outputs"][0]["data"]), (2, {"text/plain": "10"}))

    def test_tables_and_charts_have_the_forms_that_notebooks_show(self):
        code = "import pandas as pd; pd.DataFrame({'a<b': [1, 2]})"
        (table,) = self.kernel.execute(code)["outputs"]
        self.assertIn("<th>a&lt;b</th>", table["data"]["text/html"])
        self.assertIn("a<b", table["data"]["text/plain"])
        (chart,) = self.kernel.execute("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")["outputs"]
        self.assertTrue(chart["data"]["image/png"].startswith("iVBOR"))

    def test_an_error_stops_the_code_that_waits_behind_it(self):
        reply = self.kernel.execute("def f():\n    1 / 0\nf()")
        self.assertEqual(reply["status"], "error")
        (error,) = reply["outputs"]
        self.assertEqual((error["ename"], error["evalue"]), ("ZeroDivisionError", "division by zero"))
        self.assertTrue(any("line 2" in line for line in error["traceback"]), error)

    def test_silent_code_has_no_number_and_expressions_are_evaluated(self):
        self.kernel.execute("x = 3", silent=True)
        reply = self.kernel.execute_interactive("x", user_expressions={"y": "x + 1", "z": "nothing"}, allow_stdin=False, silent=False)
        found = reply["content"]["user_expressions"]
        self.assertEqual(found["y"], {"status": "ok", "data": {"text/plain": "4"}, "metadata": {}})
        self.assertEqual((found["z"]["status"], found["z"]["ename"]), ("error", "NameError"))
        self.assertEqual(reply["content"]["execution_count"], 1)

    def test_an_interrupt_ends_code_and_keeps_variables(self):
        self.kernel.execute("x = 1")
        threading.Timer(1, self.kernel.interrupt).start()
        began = time.monotonic()
        reply = self.kernel.execute("import time\ntime.sleep(60)")
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(reply["outputs"][-1]["ename"], "KeyboardInterrupt")
        self.assertEqual(self.kernel.execute("x")["outputs"][0]["data"]["text/plain"], "1")

    def test_a_restart_forgets_variables(self):
        self.kernel.execute("x = 1")
        self.kernel.restart()
        reply = self.kernel.execute("x")
        self.assertEqual((reply["outputs"][0]["ename"], reply["execution_count"]), ("NameError", 1))

    def test_reading_input_is_an_error_and_does_not_hang(self):
        reply = self.kernel.execute("input('name? ')")
        self.assertEqual(reply["status"], "error")

    def test_the_kernel_is_listed_until_it_is_deleted(self):
        model = next(it for it in self.kernel.list_kernels() if it["id"] == self.kernel.id)
        self.assertEqual((model["name"], model["connections"]), ("python3", 1))
        self.assertEqual(self.kernel.kernel_info["language_info"]["name"], "python")
        id = self.kernel.id
        self.kernel.stop()
        gone = requests.get(f"{URL}/api/kernels/{id}", headers={"Authorization": f"token {KEY}"}, timeout=10)
        self.assertEqual(gone.status_code, 404)


class KernelsInBinary(Kernels):
    form = JupyterSubprotocol.V1


if __name__ == "__main__":
    unittest.main()
