"""A server of one configuration, for measurements of its memory and of its answers."""

import http.client
import json
import os
import pathlib
import subprocess
import sys
import time


class ServerProcess:
    """One `cellblock serve` in a folder, without a model unless the configuration has providers."""

    def __init__(self, program: str, folder: pathlib.Path, port: int, config: dict[str, object]) -> None:
        """Starts it."""
        self.port = port
        folder.mkdir(exist_ok=True)
        self.config = folder / "cellblock.yaml"
        self.config.write_text(json.dumps({"listen": f"127.0.0.1:{port}", "state": str(folder / "state"), **config}))
        self.log = folder / "log"
        # Started in another folder.
        program = os.path.abspath(program) if os.sep in program else program
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [program, "serve", "--config", str(self.config), *([] if "providers" in config else ["--no-model"])],
                stdout=log,
                stderr=log,
                cwd=folder,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Waits until it is ready."""
        for _ in range(3000):
            try:
                if self.process.poll() is not None:
                    break
                if self.ask("GET", "/readyz")[0] == 200:
                    return
            except (OSError, ValueError):
                pass
            time.sleep(0.1)
        self.end()
        sys.exit(f"the server is not ready:\n{self.log.read_text()}")

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        """Makes one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request(method, path, json.dumps(body), {"content-type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(text) if text else None

    def resident(self) -> int:
        """Returns its memory in MiB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) // 1024

    def end(self) -> int:
        """Ends it and returns its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=300)
