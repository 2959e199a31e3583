"""openai-python and openai-agents: what a model repairs after a mistake, skills, compactions, and the runner of tools."""

import unittest
from typing import Any

from agents import Agent, ApplyPatchTool, CustomTool, OpenAIResponsesModel, Runner, ShellTool, set_tracing_disabled
from agents.editor import ApplyPatchOperation, ApplyPatchResult
from agents.tool import ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult
from openai import AsyncOpenAI
from openai.lib.responses_tool_runner import RegisteredFunction, ResponsesToolRunner

import skill
from gateway import HELLO, KEY, MODELS, PATIENCE, URL, WEATHER
from openai_gateway import Gateway, interpreter

set_tracing_disabled(True)

AUTO: Any = {"type": "shell", "environment": {"type": "container_auto"}}
PLAN: Any = {"type": "custom", "name": "plan", "format": {"type": "grammar", "syntax": "regex", "definition": "[a-z ]+"}}


class Repairs(Gateway):
    def each(self) -> list[Any]:
        return [(model, how, ask) for model in MODELS for how, ask in self.both().items()]

    def test_a_command_that_fails_is_repaired(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                response = ask(model=model, input="Repair in a shell.", tools=[AUTO])
                self.assertEqual(response.output_text, "Now: there")
                outputs = [item for item in response.output if item.type == "shell_call_output"]
                codes = [output.output[0].outcome.exit_code for output in outputs]
                self.assertEqual(codes, [1, 0])

    def test_a_text_that_breaks_its_grammar_never_reaches_the_client(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                first = ask(model=model, input="Plan in small words.", tools=[PLAN])
                (call,) = first.output
                self.assertEqual(call.input, "first rest")
                output: Any = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "good"}
                second = ask(model=model, input=[output], tools=[PLAN], previous_response_id=first.id)
                self.assertEqual(second.output_text, "Planned: good")

    def test_an_uploaded_skill_is_read_and_run(self) -> None:
        files: Any = list(skill.FILES.items())
        uploaded = self.openai.skills.create(files=files)
        self.addCleanup(self.openai.skills.delete, uploaded.id)
        self.assertEqual((uploaded.name, uploaded.default_version), ("greeter", "1"))
        environment = {"type": "container_auto", "skills": [{"type": "skill_reference", "skill_id": uploaded.id}]}
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                response = ask(model=model, input="Use the skill.", tools=[{"type": "shell", "environment": environment}])
                self.assertEqual(response.output_text, "Greeted.")

    def test_a_long_conversation_is_compacted_in_the_stream(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                said = [{"role": "user", "content": "long " * 2000}, {"role": "assistant", "content": "yes"}]
                request: Any = {"model": model, "input": [*said, {"role": "user", "content": "Say hello."}]}
                response = ask(**request, context_management=[{"type": "compaction", "compact_threshold": 1000}])
                self.assertEqual([item.type for item in response.output], ["compaction", "message"])
                self.assertEqual(response.output_text, HELLO)
                again = ask(model=model, input=[*response.output, {"role": "user", "content": "Say hello."}])
                self.assertEqual(again.output_text, HELLO)


class ToolRunner(Gateway):
    def run_with(self, **options: Any) -> Any:
        weather: Any = {"type": "function", "name": "get_weather", "parameters": WEATHER, "strict": True}
        asked: list[Any] = []

        def execute(arguments: Any) -> str:
            asked.append(arguments)
            return "sunny"

        runner = ResponsesToolRunner(functions=[RegisteredFunction(weather, execute)])
        self.addCleanup(runner.close)
        model = options.pop("model")
        params: Any = {
            "model": model,
            "input": [{"role": "user", "content": "Compute, then ask."}],
            "tools": [interpreter()],
        }
        response = runner.run(self.openai, params, max_steps=3, **options)
        self.assertEqual(asked, [{"city": "Rome"}])
        return response

    def test_code_that_raises_is_repaired_and_a_function_is_answered(self) -> None:
        for model in MODELS:
            for stream in (False, True):
                with self.subTest(model=model, stream=stream):
                    response = self.run_with(model=model, stream=stream)
                    self.assertEqual(response.output_text, "It is 42 and sunny.")


class Editor:
    """An editor of one file, which has one line."""

    def __init__(self) -> None:
        self.text = "one"

    def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        if f"-{self.text}\n" not in (operation.diff or ""):
            return ApplyPatchResult(status="failed", output="the lines are not in a.txt")
        self.text = "two"
        return ApplyPatchResult(status="completed", output="a.txt is changed")

    create_file = delete_file = update_file


async def run_locally(request: ShellCommandRequest) -> ShellResult:
    def run(command: str) -> ShellCommandOutput:
        if command == "ls":
            return ShellCommandOutput(stdout="a.txt", outcome=ShellCallOutcome(type="exit", exit_code=0), command=command)
        outcome = ShellCallOutcome(type="exit", exit_code=2)
        return ShellCommandOutput(stderr="ls: No such file or directory", outcome=outcome, command=command)

    return ShellResult(output=[run(command) for command in request.data.action.commands])


class Agents(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.openai = AsyncOpenAI(base_url=URL, api_key=KEY, timeout=PATIENCE, max_retries=0)
        self.addAsyncCleanup(self.openai.close)

    async def answer(self, model: str, tool: Any, said: str) -> str:
        agent = Agent(name="operator", model=OpenAIResponsesModel(model, self.openai), tools=[tool])
        result = await Runner.run(agent, said)
        return result.final_output

    async def test_a_command_in_a_container_is_repaired(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                tool = ShellTool(environment={"type": "container_auto"})
                self.assertEqual(await self.answer(model, tool, "Repair in a shell."), "Now: there")

    async def test_a_command_at_the_client_is_repaired(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                tool = ShellTool(executor=run_locally)
                self.assertEqual(await self.answer(model, tool, "List another folder."), "You have a.txt.")

    async def test_a_patch_that_does_not_fit_is_repaired(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                editor = Editor()
                said = await self.answer(model, ApplyPatchTool(editor=editor), "Repair my patch.")
                self.assertEqual((said, editor.text), ("Patched: a.txt is changed", "two"))

    async def test_a_custom_tool_gets_the_repaired_text(self) -> None:
        texts: list[str] = []

        async def plan(_context: Any, text: str) -> str:
            texts.append(text)
            return "good"

        for model in MODELS:
            with self.subTest(model=model):
                texts.clear()
                tool = CustomTool(name="plan", description="Plans.", on_invoke_tool=plan, format=PLAN["format"])
                self.assertEqual(await self.answer(model, tool, "Plan in small words."), "Planned: good")
                self.assertEqual(texts, ["first rest"])

    async def test_a_skill_of_the_request_is_read_and_run(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                environment: Any = {"type": "container_auto", "skills": [skill.inline()]}
                self.assertEqual(await self.answer(model, ShellTool(environment=environment), "Use the skill."), "Greeted.")


if __name__ == "__main__":
    unittest.main()
