"""The part of a small MCP server over stdio that is the same for all: from the standard library alone."""

import json
import sys


def serve(name, tools, functions):
    """Answers the client on stdin until it ends the connection."""

    def call(tool, arguments):
        try:
            value = functions[tool](**arguments)
        except Exception as error:
            return {"content": [{"type": "text", "text": repr(error)}], "isError": True}
        return {"content": [{"type": "text", "text": json.dumps(value)}]}

    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer = {"error": {"code": -32601, "message": "unknown method"}}
        params = message.get("params", {})
        if message["method"] == "initialize":
            info = {"name": name, "version": "1"}
            answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
        elif message["method"] == "tools/list":
            answer = {"result": {"tools": tools}}
        elif message["method"] == "tools/call":
            answer = {"result": call(params["name"], params.get("arguments", {}))}
        elif message["method"] == "ping":
            answer = {"result": {}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
