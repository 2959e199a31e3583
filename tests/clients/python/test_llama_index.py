"""LlamaIndex, which sends back what was said and asks for nothing to be stored, unless it tracks responses."""

import unittest
from collections.abc import Callable
from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.llms.openai import OpenAIResponses

from gateway import FIRST_TURN, KEY, MODELS, PATIENCE, SECOND_TURN, SUM, URL, new_key


def at_once(llm: OpenAIResponses, messages: list[ChatMessage]) -> ChatMessage:
    return llm.chat(messages).message


def streamed(llm: OpenAIResponses, messages: list[ChatMessage]) -> ChatMessage:
    *_, last = llm.stream_chat(messages)
    return last.message


def llm(model: str, **request: Any) -> OpenAIResponses:
    """A model that LlamaIndex does not know, so that it has to be told its context."""
    tools = [{"type": "code_interpreter", "container": {"type": "auto"}}]
    server = {"api_base": URL, "api_key": KEY, "timeout": PATIENCE, "max_retries": 0}
    return OpenAIResponses(model=model, context_window=100_000, built_in_tools=tools, **server, **request)


class LlamaIndex(unittest.TestCase):
    def each(self) -> list[tuple[str, Callable[[OpenAIResponses, list[ChatMessage]], ChatMessage]]]:
        return [(model, ask) for model in MODELS for ask in (at_once, streamed)]

    def test_a_key_of_the_conversation_leads_text_alone_to_its_sandbox(self) -> None:
        for model, ask in self.each():
            with self.subTest(model=model, ask=ask.__name__):
                analyst = llm(model, additional_kwargs={"prompt_cache_key": new_key()})
                history = [ChatMessage(FIRST_TURN, role="user")]
                history.append(ask(analyst, history))
                self.assertEqual(history[-1].content, "It is set.")
                history.append(ChatMessage(SECOND_TURN, role="user"))
                self.assertEqual(ask(analyst, history).content, SUM)

    def test_responses_that_are_tracked_lead_to_their_sandbox(self) -> None:
        for model, ask in self.each():
            with self.subTest(model=model, ask=ask.__name__):
                analyst = llm(model, track_previous_responses=True)
                self.assertEqual(ask(analyst, [ChatMessage(FIRST_TURN, role="user")]).content, "It is set.")
                self.assertEqual(ask(analyst, [ChatMessage(SECOND_TURN, role="user")]).content, SUM)


if __name__ == "__main__":
    unittest.main()
