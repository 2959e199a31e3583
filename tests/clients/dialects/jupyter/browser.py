"""A page in Chromium, driven over its debugging protocol."""

import itertools
import json
import pathlib
import subprocess
import time
import urllib.request

import websocket

# Longer than anything takes on a busy machine.
LIMIT = 120


def until(condition):
    """Waits until a function returns something true, and returns that."""
    end = time.monotonic() + LIMIT
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError("nothing came of it")
        time.sleep(0.1)
    return found


class Page:
    """The page; the browser ends with the `with` block."""

    def __init__(self, profile: pathlib.Path, url: str):
        # Tests run as root, for whom it has no sandbox. The page is the test's own.
        self._process = subprocess.Popen(
            [
                "chromium",
                *("--headless=new", "--no-sandbox", "--disable-gpu"),
                *("--disable-dev-shm-usage", "--no-first-run"),
                *("--disable-background-networking", "--window-size=1200,1600"),
                *("--remote-debugging-port=0", f"--user-data-dir={profile}", url),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            port = until(lambda: self._port(profile))
            pages = until(lambda: self._pages(port))
            address = pages[0]["webSocketDebuggerUrl"]
            # It refuses requests that name an origin.
            self._socket = websocket.create_connection(
                address, timeout=LIMIT, suppress_origin=True
            )
        except BaseException:
            self._end()
            raise
        self._numbers = itertools.count(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
        self._end()

    def _end(self):
        self._process.terminate()
        self._process.wait()

    @staticmethod
    def _port(profile):
        file = profile / "DevToolsActivePort"
        return file.exists() and file.read_text().partition("\n")[0]

    @staticmethod
    def _pages(port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            return [it for it in json.load(answer) if it["type"] == "page"]

    def _call(self, method, **params):
        number = next(self._numbers)
        call = {"id": number, "method": method, "params": params}
        self._socket.send(json.dumps(call))
        while (answer := json.loads(self._socket.recv())).get("id") != number:
            pass
        return answer

    def run(self, script):
        """Returns what an expression of JavaScript is; an error counts as nothing."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        return answer.get("result", {}).get("result", {}).get("value")

    def until(self, script):
        """Waits until an expression is true, and returns it."""
        try:
            return until(lambda: self.run(script))
        except TimeoutError:
            seen = self.run("document.body.innerText")
            raise TimeoutError(f"{script} is never true; the page: {seen}") from None
