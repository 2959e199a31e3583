"""Haystack, whose generator sends back what was said."""

import unittest
from collections.abc import Callable
from typing import Any

from haystack.components.generators.chat import OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.utils import Secret

from gateway import FIRST_TURN, KEY, MODELS, PATIENCE, SECOND_TURN, SUM, URL, new_key

Ask = Callable[[OpenAIResponsesChatGenerator, list[ChatMessage]], ChatMessage]


def at_once(generator: OpenAIResponsesChatGenerator, messages: list[ChatMessage], **request: Any) -> ChatMessage:
    (reply,) = generator.run(messages, generation_kwargs=request)["replies"]
    return reply


def streamed(generator: OpenAIResponsesChatGenerator, messages: list[ChatMessage], **request: Any) -> ChatMessage:
    chunks: list[StreamingChunk] = []
    (reply,) = generator.run(messages, generation_kwargs=request, streaming_callback=chunks.append)["replies"]
    assert "".join(chunk.content for chunk in chunks) == reply.text
    return reply


def generator(model: str, **request: Any) -> OpenAIResponsesChatGenerator:
    return OpenAIResponsesChatGenerator(
        api_key=Secret.from_token(KEY),
        api_base_url=URL,
        model=model,
        tools=[{"type": "code_interpreter", "container": {"type": "auto"}}],
        generation_kwargs=request,
        timeout=PATIENCE,
        max_retries=0,
    )


class Haystack(unittest.TestCase):
    def each(self) -> list[tuple[str, Ask]]:
        return [(model, ask) for model in MODELS for ask in (at_once, streamed)]

    def test_a_key_of_the_conversation_leads_text_alone_to_its_sandbox(self) -> None:
        for model, ask in self.each():
            with self.subTest(model=model, ask=ask.__name__):
                analyst = generator(model, prompt_cache_key=new_key())
                history = [ChatMessage.from_user(FIRST_TURN)]
                history.append(ask(analyst, history))
                self.assertEqual(history[-1].text, "It is set.")
                history.append(ChatMessage.from_user(SECOND_TURN))
                self.assertEqual(ask(analyst, history).text, SUM)

    def test_the_response_before_leads_to_its_sandbox(self) -> None:
        for model, ask in self.each():
            with self.subTest(model=model, ask=ask.__name__):
                analyst = generator(model)
                first = ask(analyst, [ChatMessage.from_user(FIRST_TURN)])
                self.assertEqual(first.text, "It is set.")
                before = first.meta["id"] if "id" in first.meta else first.meta["response"]["id"]
                second = ask(analyst, [ChatMessage.from_user(SECOND_TURN)], previous_response_id=before)
                self.assertEqual(second.text, SUM)


if __name__ == "__main__":
    unittest.main()
