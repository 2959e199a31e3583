"""Code that takes longer than it may, as each client of Python sees it. The gateway of these tests gives it two seconds."""

import unittest
from typing import Any

from openai.lib.responses_tool_runner import ResponsesToolRunner, ToolRunnerError

from gateway import MODELS
from openai_gateway import OUTPUTS, Gateway, calls, interpreter
from openai_gateway import logs as logs_of
from test_agents import WithAgents, at_once, ran, streamed
from test_langchain import HOW, chat, logs
from test_langchain import ran as ran_by_langchain

LATE = "It took too long."


class OpenAiPython(Gateway):
    def test_the_item_is_incomplete_and_the_model_goes_on(self) -> None:
        for model, (how, ask) in zip(MODELS, self.both().items(), strict=True):
            with self.subTest(model=model, how=how):
                response = ask(model=model, input="Sleep.", tools=[interpreter()], include=OUTPUTS)
                (call,) = calls(response)
                self.assertEqual((call.status, response.status), ("incomplete", "completed"))
                self.assertIn("before\n", logs_of(call))
                self.assertEqual(response.output_text, LATE)


class OpenAiToolRunner(Gateway):
    def run_with(self, model: str, stream: bool, **headers: str) -> Any:
        runner = ResponsesToolRunner()
        self.addCleanup(runner.close)
        params: Any = {"model": model, "input": [{"role": "user", "content": "Sleep."}], "tools": [interpreter()]}
        return runner.run(self.openai.with_options(default_headers=headers), params, max_steps=2, stream=stream)

    def test_it_goes_on_only_if_late_code_is_reported_as_completed(self) -> None:
        for model, stream in zip(MODELS, (False, True), strict=True):
            with self.subTest(model=model, stream=stream):
                with self.assertRaisesRegex(ToolRunnerError, "did not complete"):
                    self.run_with(model, stream)
                response = self.run_with(model, stream, **{"X-Cellblock-Events": "completed"})
                self.assertEqual((calls(response)[0].status, response.output_text), ("completed", LATE))


class OpenAiAgents(WithAgents):
    async def test_the_item_is_incomplete_and_the_model_goes_on(self) -> None:
        for model, ask in zip(MODELS, (at_once, streamed), strict=True):
            with self.subTest(model=model, ask=ask.__name__):
                result = await ask(self.agent(model), "Sleep.")
                (call,) = ran(result)
                self.assertEqual((call.status, result.final_output), ("incomplete", LATE))


class LangChain(unittest.TestCase):
    def test_the_item_is_incomplete_and_the_model_goes_on(self) -> None:
        for model, (how, ask) in zip(MODELS, HOW.items(), strict=True):
            with self.subTest(model=model, how=how):
                answer = ask(chat(model).bind_tools([interpreter()]), "Sleep.")
                (call,) = ran_by_langchain(answer)
                self.assertEqual((call["status"], answer.text), ("incomplete", LATE))
                self.assertIn("before\n", logs(call))


if __name__ == "__main__":
    unittest.main()
