"""Pydantic AI, whose agents send the items of a reasoning model by id, and else only what was said."""

import unittest
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, CodeExecutionTool
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.messages import ModelMessage, NativeToolCallPart
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers.openai import OpenAIProvider

from gateway import FIRST_TURN, KEY, MODELS, PATIENCE, REASONING_MODEL, SECOND_TURN, SUM, URL, new_key


async def at_once(agent: Agent, said: str, history: list[ModelMessage]) -> tuple[str, list[ModelMessage]]:
    result = await agent.run(said, message_history=history)
    return result.output, result.all_messages()


async def streamed(agent: Agent, said: str, history: list[ModelMessage]) -> tuple[str, list[ModelMessage]]:
    async with agent.run_stream(said, message_history=history) as result:
        return await result.get_output(), result.all_messages()


class PydanticAI(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.openai = AsyncOpenAI(base_url=URL, api_key=KEY, timeout=PATIENCE, max_retries=0)
        self.addAsyncCleanup(self.openai.close)

    def agent(self, model: str, **settings: Any) -> Agent:
        provider = OpenAIProvider(openai_client=self.openai)
        responses = OpenAIResponsesModel(model, provider=provider, settings=OpenAIResponsesModelSettings(**settings))
        return Agent(responses, capabilities=[NativeTool(CodeExecutionTool())])

    async def converse(self, analyst: Agent, ask: Any) -> None:
        said, history = await ask(analyst, FIRST_TURN, [])
        self.assertEqual(said, "It is set.")
        calls = [part for message in history for part in message.parts if isinstance(part, NativeToolCallPart)]
        self.assertEqual([call.args_as_dict()["code"] for call in calls], ["x = 41"])
        said, _ = await ask(analyst, SECOND_TURN, history)
        self.assertEqual(said, SUM)

    async def test_code_that_raises_is_repaired(self) -> None:
        for model in MODELS:
            for ask in (at_once, streamed):
                with self.subTest(model=model, ask=ask.__name__):
                    said, _ = await ask(self.agent(model), "Divide by zero.", [])
                    self.assertEqual(said, "Now: repaired 1.0")

    async def test_the_items_of_a_reasoning_model_lead_to_its_sandbox(self) -> None:
        for ask in (at_once, streamed):
            with self.subTest(ask=ask.__name__):
                await self.converse(self.agent(REASONING_MODEL), ask)

    async def test_a_chain_of_responses_leads_to_its_sandbox(self) -> None:
        for model in MODELS:
            for ask in (at_once, streamed):
                with self.subTest(model=model, ask=ask.__name__):
                    await self.converse(self.agent(model, openai_previous_response_id="auto"), ask)

    async def test_a_key_of_the_conversation_leads_text_alone_to_its_sandbox(self) -> None:
        for model in MODELS:
            for ask in (at_once, streamed):
                with self.subTest(model=model, ask=ask.__name__):
                    await self.converse(self.agent(model, openai_prompt_cache_key=new_key()), ask)


if __name__ == "__main__":
    unittest.main()
