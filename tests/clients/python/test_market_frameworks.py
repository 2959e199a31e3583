"""openai-agents and LangChain: tools of a server, and code that derives from what they gave."""

import unittest
from collections.abc import Callable
from typing import Any

import openai
from agents import Agent, CodeInterpreterTool, HostedMCPTool, MCPListToolsItem, OpenAIResponsesModel, ToolCallItem
from langchain_core.messages import AIMessage, HumanMessage

from gateway import MODELS
from market import (
    ANSWER,
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
from openai_gateway import client, interpreter
from test_agents import WithAgents, at_once, streamed
from test_langchain import HOW, Chat, chat


class OpenAiAgents(WithAgents):
    def analyst(self, model: str, server: dict[str, Any], *tools: Any) -> Agent:
        hosted: Any = HostedMCPTool(tool_config=server)
        return Agent(name="analyst", model=OpenAIResponsesModel(model, self.openai), tools=[hosted, *tools])

    async def test_series_are_fetched_and_derived_from_with_a_repair_and_the_conversation_goes_on(self) -> None:
        code: Any = CodeInterpreterTool(tool_config=interpreter())
        with client() as reader:
            for model in MODELS:
                for ask, server in ((at_once, labelled()), (streamed, market())):
                    with self.subTest(model=model, ask=ask.__name__):
                        analyst = self.analyst(model, server, code)
                        first = await ask(analyst, QUESTION)
                        self.assertEqual(first.final_output, ANSWER)
                        (answered,) = first.raw_responses
                        assert_turn(self, [item.to_dict() for item in answered.output])
                        kinds = [type(item) for item in first.new_items]
                        self.assertEqual((kinds.count(MCPListToolsItem), kinds.count(ToolCallItem)), (1, 4))
                        kept = reader.responses.retrieve(answered.response_id)
                        assert_report(self, reader, kept.to_dict()["cellblock"])
                        if ask is at_once:
                            said = [*first.to_input_list(), {"role": "user", "content": THEN}]
                            then = await ask(analyst, said)
                        else:
                            then = await ask(analyst, THEN, previous_response_id=first.last_response_id)
                        self.assertEqual(then.final_output, COUNTED)

    async def test_a_tool_that_fails_says_why(self) -> None:
        for model, ask in zip(MODELS, (at_once, streamed), strict=True):
            with self.subTest(model=model, ask=ask.__name__):
                result = await ask(self.analyst(model, market()), FAILING)
                (call,) = [item.raw_item for item in result.new_items if isinstance(item, ToolCallItem)]
                assert_failed(self, call.to_dict(), result.final_output)

    async def test_a_request_says_which_tools_may_be_called_and_no_server_that_is_not_allowed(self) -> None:
        for model, ask in zip(MODELS, (at_once, streamed), strict=True):
            with self.subTest(model=model, ask=ask.__name__):
                result = await ask(self.analyst(model, market(allowed_tools=["get_net_flow"])), WHICH)
                self.assertEqual(result.final_output, "get_net_flow")
                with self.assertRaises(openai.BadRequestError) as caught:
                    await ask(self.analyst(model, market(server_url=NOT_ALLOWED)), WHICH)
                self.assertEqual(caught.exception.code, "server_not_allowed")


class LangChain(unittest.TestCase):
    def each(self) -> list[tuple[str, str, Callable[[Chat, Any], AIMessage]]]:
        return [(model, how, ask) for model in MODELS for how, ask in HOW.items()]

    def test_series_are_fetched_and_derived_from_with_a_repair_and_the_conversation_goes_on(self) -> None:
        with client() as reader:
            for model, how, ask in self.each():
                with self.subTest(model=model, how=how):
                    whole = how == "at once"
                    server = market() if whole else labelled()
                    asked = HumanMessage(QUESTION)
                    analyst = chat(model, use_previous_response_id=not whole).bind_tools([server, interpreter()])
                    first = ask(analyst, [asked])
                    self.assertEqual(first.text, ANSWER)
                    assert_turn(self, first.content)
                    kept = reader.responses.retrieve(first.response_metadata["id"])
                    assert_report(self, reader, kept.to_dict()["cellblock"])
                    self.assertEqual(ask(analyst, [asked, first, HumanMessage(THEN)]).text, COUNTED)

    def test_a_tool_that_fails_says_why(self) -> None:
        for model, (how, ask) in zip(MODELS, HOW.items(), strict=True):
            with self.subTest(model=model, how=how):
                answer = ask(chat(model).bind_tools([market()]), FAILING)
                assert_failed(self, answer.content[1], answer.text)

    def test_a_request_says_which_tools_may_be_called_and_no_server_that_is_not_allowed(self) -> None:
        for model, (how, ask) in zip(MODELS, HOW.items(), strict=True):
            with self.subTest(model=model, how=how):
                answer = ask(chat(model).bind_tools([market(allowed_tools=["get_net_flow"])]), WHICH)
                self.assertEqual(answer.text, "get_net_flow")
                with self.assertRaises(openai.BadRequestError) as caught:
                    ask(chat(model).bind_tools([market(server_url=NOT_ALLOWED)]), WHICH)
                self.assertEqual(caught.exception.code, "server_not_allowed")


if __name__ == "__main__":
    unittest.main()
