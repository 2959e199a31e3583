"""Open WebUI's own code runs code with the engine `jupyter`."""

import importlib
import os
import unittest

import open_webui_client  # noqa: F401  (finds Open WebUI's modules)

interpreter = importlib.import_module("open_webui.utils.code_interpreter")

URL = os.environ["CELLBLOCK_URL"] + "/jupyter"
KEY = os.environ["CELLBLOCK_KEY"]


class Interpreter(unittest.IsolatedAsyncioTestCase):
    async def run_code(self, code, token=KEY, password="", timeout=60):
        return await interpreter.execute_code_jupyter(
            URL, code, token, password, timeout
        )

    async def test_text_values_and_errors_come_back(self):
        ran = await self.run_code("print('out')\n6 * 7")
        self.assertEqual(ran, {"stdout": "out", "stderr": "", "result": "42"})
        failed = await self.run_code("print('before')\n1 / 0")
        self.assertEqual(failed["stdout"], "before")
        self.assertIn("ZeroDivisionError: division by zero", failed["stderr"])

    async def test_a_chart_comes_back_as_a_picture(self):
        ran = await self.run_code(
            "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
        )
        self.assertTrue(ran["result"].startswith("data:image/png;base64,iVBOR"), ran)

    async def test_a_password_is_a_key_too(self):
        ran = await self.run_code("1 + 1", token="", password=KEY)
        self.assertEqual(ran, {"stdout": "", "stderr": "", "result": "2"})

    async def test_a_wrong_token_or_password_is_an_error(self):
        for token, password in [("wrong", ""), ("", "wrong"), ("", "")]:
            ran = await self.run_code("1", token=token, password=password)
            self.assertRegex(ran["stderr"], "Error: 40[13]")

    async def test_code_that_takes_too_long_does_not_go_on(self):
        ran = await self.run_code(
            "import time\nprint('begun', flush=True)\ntime.sleep(100)", timeout=2
        )
        self.assertEqual(
            (ran["stdout"], ran["stderr"]), ("begun", "Execution timed out.")
        )


if __name__ == "__main__":
    unittest.main()
