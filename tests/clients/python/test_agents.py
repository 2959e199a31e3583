"""openai-agents, whose agents get the interpreter as `CodeInterpreterTool`."""

import asyncio
import unittest
from typing import Any

from agents import (
    Agent,
    CodeInterpreterTool,
    ItemHelpers,
    MessageOutputItem,
    ModelSettings,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunResult,
    RunResultStreaming,
    ToolCallItem,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from openai.types.responses import ResponseCodeInterpreterToolCall

from gateway import ANALYSIS, FIRST_TURN, HELLO, KEY, MODELS, PATIENCE, PAUSES, SALES, SECOND_TURN, SUM, TOTALS, URL
from openai_gateway import OUTPUTS, interpreter, logs

set_tracing_disabled(True)

WITH_OUTPUTS = RunConfig(model_settings=ModelSettings(response_include=OUTPUTS))


@function_tool
def get_weather(city: str) -> str:
    """Tells the weather of a city."""
    return "sunny" if city == "Rome" else "unknown"


async def at_once(agent: Agent, said: Any, **options: Any) -> RunResult:
    return await Runner.run(agent, said, run_config=WITH_OUTPUTS, **options)


async def streamed(agent: Agent, said: Any, **options: Any) -> RunResultStreaming:
    result = Runner.run_streamed(agent, said, run_config=WITH_OUTPUTS, **options)
    await drain(result)
    return result


async def drain(result: RunResultStreaming) -> None:
    async for _ in result.stream_events():
        pass


def ran(result: RunResult | RunResultStreaming) -> list[ResponseCodeInterpreterToolCall]:
    calls = [item.raw_item for item in result.new_items if isinstance(item, ToolCallItem)]
    return [call for call in calls if isinstance(call, ResponseCodeInterpreterToolCall)]


class WithAgents(unittest.IsolatedAsyncioTestCase):
    """A test that makes agents, all of one client."""

    async def asyncSetUp(self) -> None:
        self.openai = AsyncOpenAI(base_url=URL, api_key=KEY, timeout=PATIENCE, max_retries=0, _strict_response_validation=True)
        self.addAsyncCleanup(self.openai.close)

    def agent(self, model: str, *tools: Any, **container: Any) -> Agent:
        code: Any = CodeInterpreterTool(tool_config=interpreter(**container))
        return Agent(name="analyst", model=OpenAIResponsesModel(model, self.openai), tools=[code, *tools])


class Agents(WithAgents):
    async def test_an_answer_is_the_final_output(self) -> None:
        for model in MODELS:
            for ask in (at_once, streamed):
                with self.subTest(model=model, ask=ask.__name__):
                    result = await ask(self.agent(model), "Say hello.")
                    self.assertEqual(result.final_output, HELLO)

    async def test_code_is_a_tool_call_and_an_exception_is_repaired(self) -> None:
        for model in MODELS:
            for ask in (at_once, streamed):
                with self.subTest(model=model, ask=ask.__name__):
                    result = await ask(self.agent(model), "Divide by zero.")
                    self.assertEqual(result.final_output, "Now: repaired 1.0")
                    raised, repaired = ran(result)
                    self.assertIn("ZeroDivisionError: division by zero", logs(raised))
                    self.assertEqual(logs(repaired), "repaired 1.0\n")

    async def test_an_uploaded_table_becomes_a_chart_and_a_file(self) -> None:
        for model in MODELS:
            for ask in (at_once, streamed):
                with self.subTest(model=model, ask=ask.__name__):
                    file = await self.openai.files.create(file=("sales.csv", SALES), purpose="user_data")
                    result = await ask(self.agent(model, file_ids=[file.id]), "Analyse sales.csv.")
                    self.assertEqual(result.final_output, ANALYSIS)
                    read, drawn = ran(result)
                    self.assertEqual(logs(read), "{'north': 30.5, 'south': 20.0}\n")
                    self.assertEqual([output.type for output in drawn.outputs or []].count("image"), 1)
                    (message,) = [item for item in result.new_items if isinstance(item, MessageOutputItem)]
                    self.assertEqual(ItemHelpers.text_message_output(message), ANALYSIS)
                    notes = [note for part in message.raw_item.content for note in part.annotations]
                    (cited,) = [note for note in notes if note.filename == "totals.csv"]
                    content = await self.openai.containers.files.content.retrieve(cited.file_id, container_id=cited.container_id)
                    self.assertEqual(await content.aread(), TOTALS)

    async def test_a_function_of_the_agent_is_called(self) -> None:
        for model in MODELS:
            for ask in (at_once, streamed):
                with self.subTest(model=model, ask=ask.__name__):
                    result = await ask(self.agent(model, get_weather), "What is the weather in Rome?")
                    self.assertEqual(result.final_output, "In Rome it is sunny.")

    async def test_a_conversation_is_sent_back_with_its_code(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                agent = self.agent(model)
                first = await at_once(agent, "Divide by zero.")
                said = [*first.to_input_list(), {"role": "user", "content": "Say hello."}]
                self.assertEqual((await at_once(agent, said)).final_output, HELLO)

    async def test_items_that_are_sent_back_lead_to_their_sandbox(self) -> None:
        for model in MODELS:
            for ask in (at_once, streamed):
                with self.subTest(model=model, ask=ask.__name__):
                    agent = self.agent(model)
                    first = await ask(agent, FIRST_TURN)
                    said = [*first.to_input_list(), {"role": "user", "content": SECOND_TURN}]
                    self.assertEqual((await ask(agent, said)).final_output, SUM)

    async def test_a_conversation_goes_on_from_the_response_before(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                agent = self.agent(model)
                first = await at_once(agent, "My name is Ada.")
                second = await at_once(agent, "What is my name?", previous_response_id=first.last_response_id)
                self.assertEqual(second.final_output, "Ada")

    async def test_a_run_that_is_cancelled_interrupts_its_code(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                for pause in PAUSES:
                    container = await self.openai.containers.create(name="cancelled")
                    agent = self.agent(model, container=container.id)
                    result = Runner.run_streamed(agent, "Run for ever.")
                    async for event in result.stream_events():
                        if event.type == "raw_response_event" and event.data.type.endswith("call.interpreting"):
                            await asyncio.sleep(pause)
                            result.cancel()
                    async with asyncio.timeout(PATIENCE / 2):
                        after = await at_once(agent, "What was there?")
                    if after.final_output == "['began', 'ended']":
                        break
                    # It was broken off sooner than it began.
                    self.assertIn(after.final_output, ["[]", "['ended']"])
                else:
                    self.fail("the code never began")


if __name__ == "__main__":
    unittest.main()
