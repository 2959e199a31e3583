"""A model with a script, for agents that run Python over MCP. It answers Chat Completions and Responses.

`python model.py` serves at a free port, prints the address, and ends with its standard input.
`GET /shown` returns the results of calls that it was shown.
"""

import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

HANDLE: Final = re.compile(r"sess_[0-9A-Za-z]+")
# One call each: a file, a table, a chart, code that raises, and its repair with the variables of the first call.
SCRIPT: Final = (
    "kept = 41\nwith open('notes.txt', 'w') as file: file.write('noted')",
    "import pandas as pd\nsales = pd.DataFrame({'region': ['north', 'south'], 'sales': [17, 25]})\nsales",
    "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nNone",
    "kept + absent",
    "kept + 1",
)


def text_of(content: Any) -> str:
    """A message's content as text; what is not text is written as JSON."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "\n".join(part["text"] if isinstance(part, dict) and "text" in part else json.dumps(part) for part in parts)


def results(body: dict[str, Any]) -> list[str]:
    """What the request shows of the calls so far."""
    if "messages" in body:
        return [text_of(it.get("content")) for it in body["messages"] if it.get("role") == "tool"]
    items = [it for it in body["input"] if isinstance(it, dict)]
    return [text_of(it.get("output")) for it in items if it.get("type") == "function_call_output"]


def tool_of(body: dict[str, Any]) -> tuple[str, str | None]:
    """The name of the tool that runs Python, and its namespace if it has one; frameworks give both other names."""
    for tool in body.get("tools", []):
        inner = tool.get("tools")
        if isinstance(inner, list):
            found = next((it["name"] for it in inner if it.get("name", "").endswith("run_python")), None)
            if found is not None:
                return found, tool["name"]
        name = tool.get("function", tool).get("name", "")
        if name.endswith("run_python"):
            return name, None
    raise LookupError(f"run_python is not offered: {json.dumps(body.get('tools'))[:2000]}")


def answer(body: dict[str, Any]) -> tuple[str, Any]:
    """The next step: `call` with the name, the namespace and the arguments of a tool, or `text`."""
    shown = results(body)
    if len(shown) == len(SCRIPT):
        return "text", "42"
    arguments = {"code": SCRIPT[len(shown)]}
    handles = HANDLE.findall("\n".join(shown))
    if handles:
        arguments["session_id"] = handles[-1]
    return "call", (*tool_of(body), json.dumps(arguments))


def completion(kind: str, what: Any) -> dict[str, Any]:
    """A message of Chat Completions."""
    if kind == "text":
        return {"role": "assistant", "content": what}
    name, _, arguments = what
    call = {"id": f"call_{abs(hash(arguments))}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def chat(kind: str, what: Any, stream: bool) -> Iterator[dict[str, Any]]:
    """The answer of Chat Completions: one object, or its pieces."""
    message = completion(kind, what)
    reason = "stop" if kind == "text" else "tool_calls"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    common = {"id": "chatcmpl-1", "created": 1, "model": "scripted", "usage": usage}
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": reason}
        yield {**common, "object": "chat.completion", "choices": [choice]}
        return
    for call in message.get("tool_calls", []):
        call["index"] = 0
    for delta, end in ((message, None), ({}, reason)):
        choice = {"index": 0, "delta": delta, "finish_reason": end}
        yield {**common, "object": "chat.completion.chunk", "choices": [choice]}


def responses(kind: str, what: Any) -> Iterator[dict[str, Any]]:
    """The events of Responses."""
    if kind == "text":
        content = [{"type": "output_text", "text": what, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    else:
        name, namespace, arguments = what
        item = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": f"call_{abs(hash(arguments))}",
            "name": name,
            "arguments": arguments,
        }
        if namespace is not None:
            item["namespace"] = namespace
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": response}


class Model(ThreadingHTTPServer):
    """The server, with what the last request showed of its calls."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ModelRequest)
        self.shown: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class ModelRequest(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Model

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        body = {"shown": self.server.shown} if self.path.endswith("/shown") else {"object": "list", "data": []}
        self.send(200, "application/json", json.dumps(body))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        shown = results(body)
        try:
            kind, what = answer(body)
        except LookupError as error:
            self.send(400, "application/json", json.dumps({"error": {"message": str(error)}}))
            return
        self.server.shown = max(self.server.shown, shown, key=len)
        if self.path.endswith("/responses"):
            events = responses(kind, what)
            self.send(200, "text/event-stream", "".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in events))
        elif body.get("stream"):
            pieces = "".join(f"data: {json.dumps(it)}\n\n" for it in chat(kind, what, True))
            self.send(200, "text/event-stream", f"{pieces}data: [DONE]\n\n")
        else:
            self.send(200, "application/json", json.dumps(next(chat(kind, what, False))))

    def send(self, status: int, kind: str, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


if __name__ == "__main__":
    print(Model().url, flush=True)
    sys.stdin.read()
