"""openai-python and openai-agents: commands of a shell, patches, programs, and tools that take a text."""

import json
import unittest
from typing import Any

from agents import (
    Agent,
    ApplyPatchTool,
    OpenAIResponsesModel,
    ProgrammaticToolCallingTool,
    Runner,
    ShellTool,
    ToolCallOutputItem,
    function_tool,
    set_tracing_disabled,
)
from agents.editor import ApplyPatchOperation, ApplyPatchResult
from agents.tool import ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult
from openai import AsyncOpenAI

from gateway import KEY, MODELS, PATIENCE, URL
from openai_gateway import Gateway

set_tracing_disabled(True)

AUTO: Any = {"type": "shell", "environment": {"type": "container_auto"}}
LOCAL: Any = {"type": "shell", "environment": {"type": "local"}}


class Commands(Gateway):
    def each(self) -> list[Any]:
        return [(model, how, ask) for model in MODELS for how, ask in self.both().items()]

    def test_each_command_has_its_own_output(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                response = ask(model=model, input="Count in a shell.", tools=[AUTO])
                self.assertEqual(response.output_text, "There are 3.")
                call, output, _ = response.output
                self.assertEqual((call.type, output.type), ("shell_call", "shell_call_output"))
                self.assertEqual(len(call.action.commands), 2)
                self.assertTrue(call.environment.container_id.startswith("cntr_"))
                counted, failed = output.output
                self.assertEqual((counted.stdout, counted.stderr, counted.outcome.exit_code), ("3\n", "end\n", 0))
                self.assertEqual((failed.stdout, failed.outcome.exit_code), ("", 3))

    def test_a_file_is_cited_and_can_be_read(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                response = ask(model=model, input="Save in a shell.", tools=[AUTO])
                (cited,) = response.output[-1].content[0].annotations
                content = self.openai.containers.files.content.retrieve(cited.file_id, container_id=cited.container_id)
                self.assertEqual(content.read(), b"saved\n")

    def test_items_that_are_sent_back_are_the_history(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                ask: Any = self.openai.responses.create
                first = ask(model=model, input="Count in a shell.", tools=[AUTO], store=False)
                said = [{"role": "user", "content": "Count in a shell."}, *first.output, {"role": "user", "content": "Say hello."}]
                second = ask(model=model, input=said, tools=[AUTO], store=False)
                self.assertEqual([item.type for item in second.output], ["message"])

    def test_a_local_command_is_answered_by_the_client(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                first = ask(model=model, input="List my folder.", tools=[LOCAL])
                (call,) = first.output
                self.assertEqual((call.environment.type, call.action.commands), ("local", ["ls"]))
                outcome = {"type": "exit", "exit_code": 0}
                output: Any = {
                    "type": "shell_call_output",
                    "call_id": call.call_id,
                    "output": [{"stdout": "a.txt", "stderr": "", "outcome": outcome}],
                }
                second = ask(model=model, input=[output], tools=[LOCAL], previous_response_id=first.id)
                self.assertEqual(second.output_text, "You have a.txt.")

    def test_a_tool_that_takes_a_text_is_called_with_it(self) -> None:
        tools: Any = [{"type": "custom", "name": "plan", "format": {"type": "text"}}]
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                first = ask(model=model, input="Plan in words.", tools=tools)
                (call,) = first.output
                self.assertEqual((call.type, call.name, call.input), ("custom_tool_call", "plan", "first rest"))
                output: Any = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "good"}
                second = ask(model=model, input=[output], tools=tools, previous_response_id=first.id)
                self.assertEqual(second.output_text, "Planned: good")

    def test_a_deferred_tool_is_found_and_called(self) -> None:
        parameters: Any = {"type": "object", "properties": {"to": {"type": "string"}}}
        mail: Any = {"type": "function", "name": "send_mail", "description": "Sends a mail.", "parameters": parameters}
        mail |= {"strict": False, "defer_loading": True}
        office: Any = {"type": "namespace", "name": "office", "description": "Mail and letters.", "tools": [mail]}
        tools: Any = [{"type": "tool_search"}, office]
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                first = ask(model=model, input="Find a tool for mail.", tools=tools)
                search, found, call = first.output
                self.assertEqual((search.type, found.type), ("tool_search_call", "tool_search_output"))
                self.assertEqual((search.execution, search.call_id, found.call_id), ("server", None, None))
                self.assertEqual([tool.name for tool in found.tools], ["office"])
                self.assertEqual((call.type, call.namespace, call.name), ("function_call", "office", "send_mail"))
                output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sent"}
                second = ask(model=model, input=[output], tools=tools, previous_response_id=first.id)
                self.assertEqual(second.output_text, "Mail: sent")


PRICES = {"A": 2, "B": 3, "C": 4}


@function_tool(allowed_callers=["programmatic"])
def get_price(sku: str) -> str:
    """Returns the price of an article."""
    return json.dumps({"eur": PRICES[sku]})


async def run_locally(request: ShellCommandRequest) -> ShellResult:
    ran = [
        ShellCommandOutput(stdout="a.txt", outcome=ShellCallOutcome(type="exit", exit_code=0), command=command)
        for command in request.data.action.commands
    ]
    return ShellResult(output=ran)


class Editor:
    """An editor of files that are not there."""

    def __init__(self) -> None:
        self.operations: list[ApplyPatchOperation] = []

    def _apply(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        self.operations.append(operation)
        return ApplyPatchResult(status="completed", output="a.txt is changed")

    create_file = update_file = delete_file = _apply


class Agents(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.openai = AsyncOpenAI(base_url=URL, api_key=KEY, timeout=PATIENCE, max_retries=0)
        self.addAsyncCleanup(self.openai.close)

    def agent(self, model: str, *tools: Any) -> Agent:
        return Agent(name="operator", model=OpenAIResponsesModel(model, self.openai), tools=list(tools))

    async def test_commands_in_a_container_are_recorded_and_not_run_again(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                tool = ShellTool(environment={"type": "container_auto"})
                result = await Runner.run(self.agent(model, tool), "Count in a shell.")
                self.assertEqual(result.final_output, "There are 3.")
                outputs = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
                self.assertEqual(len(outputs), 1)

    async def test_local_commands_run_at_the_client(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                result = await Runner.run(self.agent(model, ShellTool(executor=run_locally)), "List my folder.")
                self.assertEqual(result.final_output, "You have a.txt.")

    async def test_a_patch_is_applied_by_the_client(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                editor = Editor()
                result = await Runner.run(self.agent(model, ApplyPatchTool(editor=editor)), "Patch my file.")
                self.assertEqual(result.final_output, "Patched: a.txt is changed")
                (operation,) = editor.operations
                self.assertEqual((operation.type, operation.path), ("update_file", "a.txt"))

    async def test_a_program_calls_the_agents_function(self) -> None:
        for model in MODELS:
            for how in ("at once", "streamed"):
                with self.subTest(model=model, how=how):
                    agent = self.agent(model, ProgrammaticToolCallingTool(), get_price)
                    said = "Add two prices in a program."
                    if how == "streamed":
                        result: Any = Runner.run_streamed(agent, said)
                        async for _ in result.stream_events():
                            pass
                    else:
                        result = await Runner.run(agent, said)
                    self.assertEqual(result.final_output, "Together: 9")
                    outputs = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
                    self.assertEqual(len(outputs), 4)


if __name__ == "__main__":
    unittest.main()
