"""JupyterLab, with Cellblock as its kernel gateway, runs a notebook in a browser."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from browser import Page, until

GATEWAY = os.environ["CELLBLOCK_URL"] + "/jupyter"
CELLS = [
    "import matplotlib.pyplot as plt, pandas as pd\nx = 41",
    "plt.plot([1, 2]); plt.show()\npd.DataFrame({'city': ['Oslo', 'Rome'], 'n': [x + 1, 7]})",
]
NOTEBOOK = {
    "cells": [
        {
            "id": f"cell-{number}",
            "cell_type": "code",
            "source": source,
            "metadata": {},
            "outputs": [],
            "execution_count": None,
        }
        for number, source in enumerate(CELLS)
    ],
    "metadata": {
        "kernelspec": {"name": "python3", "display_name": "", "language": "python"}
    },
    "nbformat": 4,
    "nbformat_minor": 5,
}
KERNEL = "jupyterapp.shell.currentWidget.sessionContext.session.kernel"
LAST = "[...document.querySelectorAll('.jp-Notebook-cell')].at(-1).querySelector('.jp-Cell-outputArea').innerText"


class Lab(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        folder = pathlib.Path(folder.name)
        (folder / "work").mkdir()
        (folder / "work/a.ipynb").write_text(json.dumps(NOTEBOOK))
        # Nothing of the user's, and nothing for them.
        own = {
            "HOME": str(folder),
            "JUPYTER_GATEWAY_AUTH_TOKEN": os.environ["CELLBLOCK_KEY"],
            "JUPYTER_RUNTIME_DIR": str(folder / "run"),
        }
        log = (folder / "log").open("w+")
        self.addCleanup(log.close)
        lab = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyterlab", f"--gateway-url={GATEWAY}"),
                *("--no-browser", "--allow-root", "--expose-app-in-browser"),
                "--IdentityProvider.token=",
                "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
                f"--ServerApp.root_dir={folder / 'work'}",
            ],
            env=os.environ | own,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        self.addCleanup(lab.wait)
        self.addCleanup(lab.terminate)
        try:
            running = until(lambda: [*folder.glob("run/jpserver-*.json")])
        except TimeoutError:
            self.fail((folder / "log").read_text())
        url = json.loads(running[0].read_text())["url"]
        self.page = Page(folder / "profile", f"{url}lab/tree/a.ipynb")
        self.addCleanup(self.page.__exit__)
        self.page.until(f"{KERNEL}.status === 'idle'")

    def command(self, name):
        self.page.run(f"void jupyterapp.commands.execute('{name}')")

    def append(self, code):
        """Runs code in a new cell at the end."""
        self.command("notebook:move-cursor-down")
        self.command("notebook:insert-cell-below")
        cell = "jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel"
        self.page.run(f"{cell}.setSource({json.dumps(code)})")
        self.command("notebook:run-cell")

    def test_a_notebook_runs_is_interrupted_and_restarted(self):
        page = self.page
        self.command("notebook:run-all-cells")
        page.until("document.querySelector('.jp-OutputArea img').naturalWidth > 100")
        table = page.until("document.querySelector('.jp-OutputArea table').innerText")
        self.assertEqual(table.split(), ["city", "n", "Oslo", "42", "Rome", "7"])

        self.append("import time\nprint('begun', flush=True)\ntime.sleep(600)")
        page.until(f"{LAST}.includes('begun')")
        self.command("notebook:interrupt-kernel")
        page.until(f"{LAST}.includes('KeyboardInterrupt')")
        self.append("print('kept', x)")
        page.until(f"{LAST}.includes('kept 41')")

        self.command("notebook:restart-kernel")
        page.until("document.querySelectorAll('.jp-Dialog .jp-mod-accept').length")
        page.run("document.querySelector('.jp-Dialog .jp-mod-accept').click()")
        page.until("!document.querySelector('.jp-Dialog')")
        self.append("print('found', 'x' in globals())")
        page.until(f"{LAST}.includes('found False')")


if __name__ == "__main__":
    unittest.main()
