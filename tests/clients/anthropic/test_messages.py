"""anthropic from PyPI: messages, code execution, files, tools that code calls, errors."""

import os
import unittest
from typing import Any

import anthropic
from anthropic import Anthropic
from anthropic.types import Message

PYTHON: Any = {"type": "code_execution_20250522", "name": "code_execution"}
COMMANDS: Any = {"type": "code_execution_20250825", "name": "code_execution"}
REPL: Any = {"type": "code_execution_20260120", "name": "code_execution"}
PRICE: Any = {
    "name": "get_price",
    "description": "Returns a price.",
    "input_schema": {
        "type": "object",
        "properties": {"symbol": {"type": "string"}},
        "required": ["symbol"],
    },
    "allowed_callers": ["code_execution_20260120"],
}


class Messages(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Anthropic(
            base_url=os.environ["CELLBLOCK_URL"], api_key="none", max_retries=0
        )
        self.addCleanup(self.client.close)

    def whole(self, content: Any, **more: Any) -> Message:
        messages = more.pop("messages", []) + [{"role": "user", "content": content}]
        return self.client.messages.create(
            model="m", max_tokens=1000, messages=messages, **more
        )

    def streamed(self, content: Any, **more: Any) -> Message:
        messages = more.pop("messages", []) + [{"role": "user", "content": content}]
        with self.client.messages.stream(
            model="m", max_tokens=1000, messages=messages, **more
        ) as stream:
            return stream.get_final_message()

    def both(self) -> list[Any]:
        return [self.whole, self.streamed]

    def test_a_text_is_answered(self) -> None:
        for ask in self.both():
            with self.subTest(ask=ask.__name__):
                message = ask("Say hello.", system="Be brief.")
                self.assertEqual([block.type for block in message.content], ["text"])
                self.assertEqual(
                    (message.content[0].text, message.stop_reason),
                    ("Hello, Ada.", "end_turn"),
                )
                self.assertGreater(message.usage.output_tokens, 0)

    def test_python_runs(self) -> None:
        for ask in self.both():
            with self.subTest(ask=ask.__name__):
                message = ask("Six times seven?", tools=[PYTHON])
                used, result, text = message.content
                self.assertEqual(
                    (used.name, used.input),
                    ("code_execution", {"code": "print(6 * 7)"}),
                )
                self.assertEqual(result.tool_use_id, used.id)
                self.assertEqual(
                    (result.content.stdout, result.content.return_code), ("42\n", 0)
                )
                self.assertEqual(text.text, "It is 42.")
                self.assertIsNotNone(message.container.expires_at.tzinfo)

    def test_an_exception_is_a_result(self) -> None:
        result = self.whole("Divide by zero.", tools=[PYTHON]).content[1]
        self.assertEqual(
            (result.type, result.content.return_code), ("code_execution_tool_result", 1)
        )
        self.assertIn("ZeroDivisionError", result.content.stderr)

    def test_a_container_keeps_variables(self) -> None:
        first = self.whole("Remember x.", tools=[REPL])
        history = [
            {"role": "user", "content": "Remember x."},
            {"role": "assistant", "content": first.content},
        ]
        for ask in self.both():
            with self.subTest(ask=ask.__name__):
                second = ask(
                    "Recall x.",
                    messages=history,
                    tools=[REPL],
                    container=first.container.id,
                )
                self.assertEqual(second.content[1].content.stdout, "42\n")
                self.assertEqual(second.container.id, first.container.id)

    def test_files_go_in_and_out(self) -> None:
        files = self.client.beta.files
        file = files.upload(file=("in.txt", b"abc", "text/plain"))
        self.assertEqual(
            (file.filename, file.size_bytes, file.type), ("in.txt", 3, "file")
        )
        self.assertIn(file.id, [listed.id for listed in files.list(limit=1000)])
        content = [
            {"type": "text", "text": "Shout."},
            {"type": "container_upload", "file_id": file.id},
        ]
        result = self.whole(content, tools=[PYTHON]).content[1]
        made = result.content.content[0].file_id
        self.assertEqual(files.retrieve_metadata(made).filename, "out.txt")
        self.assertEqual(files.download(made).read(), b"ABC")
        self.assertEqual(files.delete(file.id).id, file.id)
        with self.assertRaises(anthropic.NotFoundError):
            files.retrieve_metadata(file.id)

    def test_commands_and_edits_run(self) -> None:
        for ask in self.both():
            with self.subTest(ask=ask.__name__):
                message = ask("List files.", tools=[COMMANDS])
                kinds = [block.type for block in message.content]
                self.assertEqual(
                    kinds,
                    [
                        "server_tool_use",
                        "bash_code_execution_tool_result",
                        "server_tool_use",
                        "text_editor_code_execution_tool_result",
                        "text",
                    ],
                )
                self.assertEqual(message.content[0].name, "bash_code_execution")
                self.assertEqual(message.content[1].content.stdout, "hi\n")
                made = message.content[1].content.content[0].file_id
                self.assertEqual(self.client.beta.files.download(made).read(), b"hi\n")
                self.assertEqual(message.content[3].content.content, "hi")

    def test_a_skill_is_read_after_a_wrong_guess(self) -> None:
        manifest = b"---\nname: greeter\ndescription: Greets.\n---\nRun greet.sh.\n"
        files: Any = [
            ("greeter/SKILL.md", manifest),
            ("greeter/greet.sh", b"echo hello from a skill\n"),
        ]
        skill = self.client.skills.create(files=files, display_name="Greeter")
        self.addCleanup(self.client.skills.delete, skill.id)
        container = {"skills": [{"type": "custom", "skill_id": skill.id}]}
        for ask in self.both():
            with self.subTest(ask=ask.__name__):
                message = ask("Use the skill.", tools=[COMMANDS], container=container)
                _, guess, _, read, text = message.content
                self.assertEqual(
                    (guess.content.return_code, text.text), (1, "Greeted.")
                )
                self.assertIn("Run greet.sh.\n", read.content.stdout)
                self.assertIn("hello from a skill\n", read.content.stdout)
                (mounted,) = message.container.skills
                self.assertEqual(mounted.skill_id, skill.id)

    def test_code_calls_a_tool_of_the_client(self) -> None:
        for ask in self.both():
            with self.subTest(ask=ask.__name__):
                first = ask("What is the price?", tools=[REPL, PRICE])
                code, call = first.content
                self.assertEqual(
                    (first.stop_reason, call.name), ("tool_use", "get_price")
                )
                self.assertEqual(
                    (call.caller.type, call.caller.tool_id),
                    ("code_execution_20260120", code.id),
                )
                history = [
                    {"role": "user", "content": "What is the price?"},
                    {"role": "assistant", "content": first.content},
                ]
                answer = [
                    {
                        "type": "tool_result",
                        "tool_use_id": call.id,
                        "content": '{"usd": 42}',
                    }
                ]
                container = first.container.id
                second = ask(
                    answer, messages=history, tools=[REPL, PRICE], container=container
                )
                result, text = second.content
                self.assertEqual(
                    (result.tool_use_id, result.content.stdout), (code.id, "84\n")
                )
                self.assertEqual(
                    (text.text, second.stop_reason), ("It is 84.", "end_turn")
                )

    def test_errors_are_the_exceptions_that_the_client_knows(self) -> None:
        tool: Any = {"type": "web_search_20250305", "name": "web_search"}
        with self.assertRaisesRegex(
            anthropic.BadRequestError, "web_search_20250305"
        ) as refused:
            self.whole("Search.", tools=[tool])
        self.assertTrue(refused.exception.request_id)
        with self.assertRaises(anthropic.NotFoundError):
            self.whole("Say hello.", tools=[PYTHON], container="cntr_none")
        with self.assertRaises(anthropic.NotFoundError):
            self.client.models.retrieve("none")
        with self.assertRaises(anthropic.InternalServerError):
            self.whole("Fail.")
        with self.assertRaises(anthropic.APIStatusError):
            self.streamed("Fail.")

    def test_models_are_listed_and_tokens_counted(self) -> None:
        self.assertEqual([model.id for model in self.client.models.list()], ["m"])
        counted = self.client.messages.count_tokens(
            model="m",
            messages=[{"role": "user", "content": "Say hello."}],
            tools=[PYTHON],
        )
        self.assertGreater(counted.input_tokens, 10)


if __name__ == "__main__":
    unittest.main()
