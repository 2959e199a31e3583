"""The client without a server: addresses, errors of connections, and that it has every operation."""

import asyncio
import http.server
import inspect
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cellblock
import cellblock.aio
from cellblock import _operations
from cellblock._http import Operation, Server
from cellblock._results import Result

PACKAGE = Path(cellblock.__file__).parent
ROOT = PACKAGE.parents[2]


@contextmanager
def answering(answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Serves one answer to all requests, and yields the address."""

    class FixedAnswer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        do_POST = do_PUT = do_DELETE = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), FixedAnswer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def fixed(status: int, body: str, **headers: str) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body.encode())), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body.encode())

    return answer


class Addresses(unittest.TestCase):
    def test_an_address_can_end_in_v1_and_keeps_its_own_path(self) -> None:
        for given, used in (
            ("http://host:8080/v1", "http://host:8080"),
            ("http://host:8080/v1/", "http://host:8080"),
            (" https://host/ ", "https://host"),
            ("https://host/cells/v1", "https://host/cells"),
        ):
            self.assertEqual(Server(given).url, used)

    def test_an_address_that_is_not_one_is_an_error_before_any_request(self) -> None:
        for given in ("host:8080", "ftp://host", "http://", "http://host:port", ""):
            with self.assertRaisesRegex(cellblock.CellblockError, "is not http://HOST or https://HOST"):
                cellblock.Client(given)

    def test_an_address_with_a_password_is_rejected_and_not_shown(self) -> None:
        for given in ("https://user:pw@host", "https://host?key=pw", "https://host/#pw"):
            with self.assertRaisesRegex(cellblock.CellblockError, "pass the key as `key`") as raised:
                cellblock.Client(given)
            self.assertNotIn("pw", str(raised.exception))

    def test_names_in_a_path_are_quoted_and_cannot_leave_it(self) -> None:
        operation: Operation[bytes] = Operation("GET", "/v1/sessions/{id}/files/{path}")
        self.assertEqual(operation.at(id="a/b ?", path="tmp/ü#.txt"), "/v1/sessions/a%2Fb%20%3F/files/tmp/%C3%BC%23.txt")
        for names in ({"id": "", "path": "a"}, {"id": "..", "path": "a"}, {"id": "a", "path": "x/../y"}, {"id": "a", "path": ""}):
            with self.assertRaisesRegex(cellblock.CellblockError, "it must be a name"):
                operation.at(**names)


class Errors(unittest.TestCase):
    def test_a_refused_connection_names_the_address_and_the_fix(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with self.assertRaisesRegex(cellblock.CellblockError, f"127.0.0.1:{port}.*refused.*start `cellblock serve`"):
            cellblock.Client(f"http://127.0.0.1:{port}/v1").sessions()

    def test_https_at_a_server_without_it_says_to_use_http(self) -> None:
        with (
            answering(fixed(200, "{}")) as url,
            self.assertRaisesRegex(cellblock.CellblockError, r"at https://127\.0\.0\.1:\d+: .* does not answer with TLS .*use http://"),
        ):
            cellblock.Client(url.replace("http:", "https:")).sessions()

    def test_http_and_unknown_certificates_at_a_server_with_tls_say_what_to_change(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(ROOT / "crates/gateway/src/server/tests/first.pem")

            def serve() -> None:
                for _ in range(2):
                    accepted, _address = listener.accept()
                    try:
                        context.wrap_socket(accepted, server_side=True).close()
                    except OSError:
                        accepted.close()

            thread = threading.Thread(target=serve)
            thread.start()
            place = f"127.0.0.1:{listener.getsockname()[1]}"
            with self.assertRaisesRegex(cellblock.CellblockError, "set SSL_CERT_FILE"):
                cellblock.Client(f"https://{place}").sessions()
            with self.assertRaisesRegex(cellblock.CellblockError, "use https://"):
                cellblock.Client(f"http://{place}").sessions()
            thread.join()

    def test_answers_of_other_servers_are_explained(self) -> None:
        with answering(fixed(200, "<html>")) as url, self.assertRaisesRegex(cellblock.CellblockError, "'<html>'.*check the host and port"):
            cellblock.Client(url).sessions()
        moved = fixed(301, "", Location="https://elsewhere/")
        with answering(moved) as url, self.assertRaisesRegex(cellblock.ServerError, "names 'https://elsewhere/'; use that address"):
            cellblock.Client(url).sessions()

    def test_an_error_has_the_servers_code_message_and_delay(self) -> None:
        body = json.dumps({"error": {"message": "wait", "type": "too_many_requests", "param": None, "code": "session_busy"}})
        with answering(fixed(429, body, Retry_After="2")) as url, self.assertRaises(cellblock.ServerError) as raised:
            cellblock.Client(url, key="secret").runs()
        error = raised.exception
        self.assertEqual((error.status, error.code, str(error), error.retry_after), (429, "session_busy", "wait", 2.0))
        with answering(fixed(400, '{"error": "no code"}')) as url, self.assertRaisesRegex(cellblock.ServerError, "^no code$"):
            cellblock.Client(url).execute("")

    def test_a_key_loses_the_line_break_of_its_file_and_one_that_cannot_be_sent_is_not_shown(self) -> None:
        self.assertEqual(Server("http://host", "cbk_1\n").authorization(), {"Authorization": "Bearer cbk_1"})
        self.assertEqual(Server("http://host", " ").authorization(), {})
        for key in ("cbk_1\n2", "cbk_…"):
            with self.assertRaises(cellblock.CellblockError) as raised:
                cellblock.Client("http://host", key=key)
            self.assertNotIn("cbk_", str(raised.exception))

    def test_a_stream_that_is_cut_is_an_error(self) -> None:
        started = 'data: {"type": "cell.started", "sequence_number": 0}\n\n'
        for rest in ("", 'data: {"type": "cell.st'):

            def answer(handler: http.server.BaseHTTPRequestHandler, rest: str = rest) -> None:
                is_cell = handler.path.endswith("/cells")
                fixed(200, started + rest if is_cell else '{"id": "sess_1"}')(handler)

            with answering(answer) as url:
                session = cellblock.Session(url)
                with self.assertRaisesRegex(cellblock.CellblockError, "stream ended before the cell did"):
                    list(session.stream("1"))
                with self.assertRaisesRegex(cellblock.CellblockError, "stream ended before the cell did"):
                    session.run("1", on_output=lambda stream, text: None)


class Cancellation(unittest.TestCase):
    def test_a_cell_that_arrives_after_the_interrupt_of_its_canceled_task_is_interrupted(self) -> None:
        received, interrupted = threading.Event(), threading.Event()
        calls: list[str] = []

        def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
            handler.rfile.read(int(handler.headers.get("Content-Length", "0")))
            if handler.path.endswith("/interrupt"):
                calls.append(handler.path)
                # The first arrives before the cell runs, and does nothing.
                if len(calls) > 1:
                    interrupted.set()
            elif handler.path.endswith("/cells"):
                received.set()
                interrupted.wait(60)
            fixed(200, '{"id": "sess_1"}')(handler)

        async def work(url: str) -> None:
            async with cellblock.aio.Session(url) as session:
                task = asyncio.create_task(session.run("while True: pass"))
                await asyncio.to_thread(received.wait, 60)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task

        with answering(answer) as url:
            asyncio.run(work(url))
        self.assertTrue(interrupted.is_set())


class Surface(unittest.TestCase):
    def test_every_operation_of_the_api_has_a_method(self) -> None:
        known = {name for name, it in vars(_operations).items() if isinstance(it, Operation)}
        modules = [path.read_text() for path in PACKAGE.glob("_*.py") if path.name != "_operations.py"]
        used = {name for text in modules for name in re.findall(r"\b(?:api\.)?([A-Z]+(?:_[A-Z0-9]+)*)\b", text)}
        self.assertEqual(known - used, set())
        self.assertGreater(len(known), 70)

    def test_asyncio_has_the_same_methods_with_the_same_arguments(self) -> None:
        pairs = [
            (cellblock.Session, cellblock.aio.Session),
            (cellblock.Client, cellblock.aio.Client),
            (cellblock.Process, cellblock.aio.Process),
            (cellblock.Terminal, cellblock.aio.Terminal),
            (cellblock.Try, cellblock.aio.Try),
        ]
        for sync, of_asyncio in pairs:
            missing = [name for name in dir(sync) if not name.startswith("_") and not hasattr(of_asyncio, name)]
            self.assertEqual(missing, [], sync.__name__)
            undocumented = [name for name in dir(sync) if not name.startswith("_") and not inspect.getdoc(getattr(sync, name))]
            self.assertEqual(undocumented, [], sync.__name__)

    def test_a_skill_of_files_older_than_a_zip_can_say_is_uploaded(self) -> None:
        with tempfile.TemporaryDirectory() as folder, answering(fixed(201, '{"id": "skill_1"}')) as url:
            page = Path(folder) / "SKILL.md"
            page.write_text("x")
            os.utime(page, (0, 0))
            self.assertEqual(cellblock.Client(url).add_skill(folder)["id"], "skill_1")

    def test_asyncio_calls_the_same_operations(self) -> None:
        async def work(url: str) -> object:
            client = cellblock.aio.Client(url)
            return await client.runs(session="s 1", limit=2)

        asked = []

        def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
            asked.append(handler.path)
            fixed(200, '{"data": [1]}')(handler)

        with answering(answer) as url:
            self.assertEqual(asyncio.run(work(url)), [1])
        self.assertEqual(asked, ["/v1/runs?session=s+1&limit=2"])

    def test_the_generated_files_and_the_versions_are_current(self) -> None:
        checked = subprocess.run([sys.executable, "python/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(checked.stderr, "")
        version = json.loads((ROOT / "docs/reference/openapi.json").read_text())["info"]["version"]
        self.assertIn(f'\nversion = "{version}"\n', (ROOT / "python/client/pyproject.toml").read_text())
        self.assertEqual(json.loads((ROOT / "javascript/package.json").read_text())["version"], version)


class Notebooks(unittest.TestCase):
    def test_a_result_is_shown_without_the_markup_that_code_wrote(self) -> None:
        table = {"type": "dataframe", "name": None, "rows": 2, "columns": [{"name": "<b>"}], "head": [["<script>"], [None]]}
        data = {"outcome": "completed", "outputs": [table], "files": [], "stdout": "<i>\n", "stderr": ""}
        shown = Result.read(data, Server("http://127.0.0.1:1"))._repr_mimebundle_()
        self.assertEqual(shown["text/plain"], "<i>\n<b>\n<script>\n\nrows: 2, columns: 1")
        self.assertNotRegex(shown["text/html"], "<(script|i|b)>")
        self.assertIn("<td>&lt;script&gt;</td>", shown["text/html"])

    def test_control_characters_and_long_text_are_shown_as_what_they_are(self) -> None:
        data = {"outcome": "completed", "outputs": [], "files": [], "stdout": "\x1b[2J\u202etxt" + "a" * 30_000, "stderr": ""}
        shown = Result.read(data, Server("http://127.0.0.1:1"))._repr_mimebundle_()
        for text in shown.values():
            self.assertIn(r"\u001b[2J\u202etxt", text)
            self.assertIn("… 10008 more characters", text)

    def test_a_picture_that_is_gone_is_named(self) -> None:
        image = {"media_type": "image/png", "sha256": "0" * 64}
        figure = {"type": "image", "name": None, "image": image}
        data = {"outcome": "completed", "outputs": [figure], "files": [], "stdout": "", "stderr": ""}
        with answering(fixed(404, '{"error": {"message": "no artifact", "code": "artifact_not_found"}}')) as url:
            self.assertIn("no artifact", Result.read(data, Server(url)).outputs[0]._repr_mimebundle_()["text/html"])


if __name__ == "__main__":
    os.chdir(ROOT)
    unittest.main()
