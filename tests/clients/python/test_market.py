"""openai-python: tools of a server, and code that derives from what they gave."""

import itertools
import unittest
from typing import Any

import openai

from gateway import MODELS
from market import (
    ANSWER,
    CHART,
    COUNTED,
    FAILING,
    NOT_ALLOWED,
    QUESTION,
    THEN,
    WHICH,
    assert_failed,
    assert_report,
    assert_turn,
    labelled,
    market,
)
from openai_gateway import OUTPUTS, Gateway, interpreter, raw_events


class Market(Gateway):
    def test_series_are_fetched_and_derived_from_with_a_repair_and_the_conversation_goes_on(self) -> None:
        for model in MODELS:
            for how, ask in self.both().items():
                with self.subTest(model=model, how=how):
                    tools: Any = [market() if how == "at once" else labelled(), interpreter()]
                    stored = how == "at once"
                    first = ask(model=model, input=QUESTION, tools=tools, include=OUTPUTS, metadata=CHART, store=stored)
                    self.assertEqual((first.status, first.output_text), ("completed", ANSWER))
                    assert_turn(self, [item.to_dict() for item in first.output])
                    assert_report(self, self.openai, first.to_dict()["cellblock"])
                    self.assertEqual([tool.type for tool in first.tools], ["mcp", "code_interpreter"])
                    if stored:
                        then = ask(model=model, input=THEN, tools=tools, previous_response_id=first.id)
                    else:
                        asked: Any = [{"role": "user", "content": QUESTION}, *(item.to_dict() for item in first.output)]
                        asked.append({"role": "user", "content": THEN})
                        then = ask(model=model, input=asked, tools=tools, store=False)
                    self.assertEqual((then.output_text, then.to_dict()["cellblock"]["gaps"]), (COUNTED, []))

    def test_a_server_is_asked_and_its_tools_are_called_in_events(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                events = raw_events(self.openai, model=model, input=FAILING, tools=[market()])
                for place, kinds in enumerate(
                    [
                        ["mcp_list_tools.in_progress", "mcp_list_tools.completed"],
                        ["mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done", "mcp_call.failed"],
                    ]
                ):
                    item = [event for event in events if getattr(event, "output_index", None) == place]
                    kinds = ["output_item.added", *kinds, "output_item.done"]
                    told = [kind for kind, _ in itertools.groupby(event.type for event in item)]
                    self.assertEqual(told, [f"response.{kind}" for kind in kinds])
                    self.assertEqual(item[0].item.id, item[-1].item.id)
                deltas = [event.delta for event in item if event.type.endswith("arguments.delta")]
                self.assertEqual("".join(deltas), item[-1].item.arguments)
                assert_failed(self, item[-1].item.to_dict(), events[-1].response.output_text)

    def test_a_request_says_which_tools_may_be_called(self) -> None:
        for model, (how, ask) in zip(MODELS, self.both().items(), strict=True):
            for allowed in (["get_net_flow"], {"tool_names": ["get_net_flow"]}):
                with self.subTest(model=model, how=how, allowed=allowed):
                    secrets = {"authorization": "quiet", "headers": {"X-Key": "quiet"}}
                    response = ask(model=model, input=WHICH, tools=[market(allowed_tools=allowed, **secrets)])
                    self.assertNotIn("quiet", response.to_json())
                    listed, _ = response.output
                    self.assertEqual([tool.name for tool in listed.tools], ["get_net_flow"])
                    self.assertEqual(response.output_text, "get_net_flow")
                    self.assertEqual(response.tools[0].to_dict()["allowed_tools"], allowed)

    def test_a_server_that_is_not_allowed_is_refused_before_anything_is_asked(self) -> None:
        for model, (how, ask) in zip(MODELS, self.both().items(), strict=True):
            with self.subTest(model=model, how=how):
                with self.assertRaises(openai.BadRequestError) as caught:
                    ask(model=model, input=WHICH, tools=[market(server_url=NOT_ALLOWED)])
                told = (caught.exception.code, caught.exception.param)
                self.assertEqual(told, ("server_not_allowed", "tools[0].server_url"))


if __name__ == "__main__":
    unittest.main()
