"""The server of tools behind the gateway, and what a turn comes to that fetches from it and derives."""

import hashlib
import json
import os
import unittest
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urljoin

from openai import OpenAI

from gateway import PNG, URL

TOOLS: Final = os.environ["CELLBLOCK_TOOLS"]
NOT_ALLOWED: Final = "http://127.0.0.1:1/mcp"

QUESTION: Final = "Draw the price and flow of ACME."
ANSWER: Final = "Over 90 days they move together."
THEN: Final = "How many numbers were that?"
COUNTED: Final = "That was 180 numbers."
FAILING: Final = "What are the balances of ACME?"
FAILURE: Final = "nobody tells the balances of ACME"
WHICH: Final = "Which tools are there?"
# Notes of a request whose user wants a chart.
CHART: Final = {"chart_intent": "explicit"}


def series(key: str) -> list[dict[str, Any]]:
    """A series of numbers by day, as the server has it."""
    return [{"date": f"2026-{1 + day // 28:02}-{1 + day % 28:02}", key: 100 + day * 3 % 17} for day in range(90)]


SERIES: Final = {"get_price_history": series("close"), "get_net_flow": series("net_flow")}


def market(**more: Any) -> dict[str, Any]:
    """The server as a request names it by its address."""
    return {"type": "mcp", "server_label": "market", "server_url": TOOLS, "require_approval": "never", **more}


def labelled() -> dict[str, Any]:
    """The server as the operator has set it up."""
    return {"type": "mcp", "server_label": "market", "require_approval": "never"}


def assert_turn(test: unittest.TestCase, items: Sequence[dict[str, Any]]) -> None:
    """Both series were fetched whole, and derived from at the second attempt."""
    listed, *fetched, failed, repaired, _message = items
    kinds = ["mcp_list_tools", "mcp_call", "mcp_call", "code_interpreter_call", "code_interpreter_call"]
    test.assertEqual([item["type"] for item in items[:-1]], kinds)
    test.assertEqual((listed["server_label"], listed.get("error")), ("market", None))
    test.assertEqual([tool["name"] for tool in listed["tools"]], [*SERIES, "get_balances"])
    test.assertEqual([tool["input_schema"]["required"] for tool in listed["tools"]], [["symbol"]] * 3)
    for call, (name, rows) in zip(fetched, SERIES.items(), strict=True):
        test.assertEqual((call["server_label"], call["name"], call["status"]), ("market", name, "completed"))
        test.assertEqual(json.loads(call["arguments"]), {"symbol": "ACME"})
        test.assertEqual(json.loads(call["output"]), rows)
        test.assertIsNone(call.get("error"))
    test.assertEqual((failed["status"], repaired["status"]), ("failed", "completed"))
    test.assertNotIn("save_figure", failed["code"])
    test.assertIn("save_figure", repaired["code"])
    kinds_of = [[output["type"] for output in call.get("outputs") or []] for call in (failed, repaired)]
    test.assertEqual([kinds.count("image") for kinds in kinds_of], [0, 1])


def assert_report(test: unittest.TestCase, openai: OpenAI, report: dict[str, Any]) -> None:
    """The picture is the one that is told, and the dataset holds both series."""
    test.assertEqual((report["outcome"], report["gaps"], report["derivations"]), ("answer", [], 2))
    (artifact,) = report["artifacts"]
    test.assertEqual((artifact["kind"], artifact["title"], artifact["alt"]), ("image", "ACME", "price by day"))
    picture = openai.get(urljoin(URL, artifact["url"]), cast_to=bytes)
    test.assertTrue(picture.startswith(PNG))
    test.assertEqual(hashlib.sha256(picture).hexdigest(), artifact["sha256"])
    document = openai.get(urljoin(URL, report["dataset"]["url"]), cast_to=bytes)
    test.assertEqual(hashlib.sha256(document).hexdigest(), report["dataset"]["sha256"])
    dataset = json.loads(document)
    for name, rows in SERIES.items():
        test.assertEqual(dataset["aliases"][f"{name}_1"], rows)
    test.assertEqual(dataset["result"]["rows"], 90)


def assert_failed(test: unittest.TestCase, call: dict[str, Any], answer: str) -> None:
    """The tool said why it failed, and the model read it."""
    test.assertEqual((call["type"], call["name"], call["status"]), ("mcp_call", "get_balances", "failed"))
    test.assertIsNone(call.get("output"))
    test.assertEqual(call["error"], {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": FAILURE}]})
    test.assertIn(FAILURE, answer)
