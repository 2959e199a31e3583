"""LiteLLM, whose `completion()` speaks Chat Completions to a server that it takes for OpenAI's."""

import unittest
from typing import Any

import litellm

from gateway import FIRST_TURN, HELLO, KEY, MODELS, PATIENCE, SECOND_TURN, SUM, URL, WEATHER, new_key

CODE = {"type": "code_interpreter"}


def at_once(model: str, messages: list[Any], **request: Any) -> Any:
    return litellm.completion(
        model=f"openai/{model}", messages=messages, api_base=URL, api_key=KEY, timeout=PATIENCE, num_retries=0, **request
    )


def streamed(model: str, messages: list[Any], **request: Any) -> Any:
    chunks = list(at_once(model, messages, stream=True, **request))
    return litellm.stream_chunk_builder(chunks, messages=messages)


class LiteLLM(unittest.TestCase):
    def each(self) -> list[Any]:
        return [(model, ask) for model in MODELS for ask in (at_once, streamed)]

    def test_an_answer_is_whole(self) -> None:
        for model, ask in self.each():
            with self.subTest(model=model, ask=ask.__name__):
                answer = ask(model, [{"role": "user", "content": "Say hello."}])
                self.assertEqual(answer.choices[0].message.content, HELLO)
                self.assertEqual(answer.choices[0].finish_reason, "stop")

    def test_code_runs_within_and_the_next_turn_has_its_variables(self) -> None:
        for model, ask in self.each():
            with self.subTest(model=model, ask=ask.__name__):
                request = {"tools": [CODE], "prompt_cache_key": new_key()}
                history: list[Any] = [{"role": "user", "content": FIRST_TURN}]
                answer = ask(model, history, **request)
                self.assertEqual(answer.choices[0].message.content, "It is set.")
                self.assertIsNone(answer.choices[0].message.tool_calls)
                history += [answer.choices[0].message, {"role": "user", "content": SECOND_TURN}]
                self.assertEqual(ask(model, history, **request).choices[0].message.content, SUM)

    def test_code_that_raises_is_repaired_within(self) -> None:
        for model, ask in self.each():
            with self.subTest(model=model, ask=ask.__name__):
                answer = ask(model, [{"role": "user", "content": "Divide by zero."}], tools=[CODE])
                self.assertEqual(answer.choices[0].message.content, "Now: repaired 1.0")

    def test_responses_have_the_items_of_code_and_of_commands(self) -> None:
        code: Any = {"type": "code_interpreter", "container": {"type": "auto"}}
        shell: Any = {"type": "shell", "environment": {"type": "container_auto"}}
        for model in MODELS:
            for said, tool, kinds in (
                ("Divide by zero.", code, ["code_interpreter_call"] * 2),
                ("Repair in a shell.", shell, ["shell_call", "shell_call_output"] * 2),
            ):
                with self.subTest(model=model, said=said):
                    response: Any = litellm.responses(
                        model=f"openai/{model}", input=said, tools=[tool], api_base=URL, api_key=KEY, timeout=PATIENCE
                    )
                    items = [item if isinstance(item, dict) else item.model_dump() for item in response.output]
                    self.assertEqual([item["type"] for item in items], [*kinds, "message"])
                    self.assertTrue(items[-1]["content"][0]["text"].startswith("Now: "))

    def test_a_function_of_the_client_is_called_and_its_result_answered(self) -> None:
        for model, ask in self.each():
            with self.subTest(model=model, ask=ask.__name__):
                weather = {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}
                history: list[Any] = [{"role": "user", "content": "What is the weather in Rome?"}]
                answer = ask(model, history, tools=[weather, CODE])
                self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
                (call,) = answer.choices[0].message.tool_calls
                self.assertEqual((call.function.name, call.function.arguments), ("get_weather", '{"city": "Rome"}'))
                history += [answer.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
                answer = ask(model, history, tools=[weather, CODE])
                self.assertEqual(answer.choices[0].message.content, "In Rome it is sunny.")

    def test_a_wrong_key_and_an_unknown_model_are_refused(self) -> None:
        said = [{"role": "user", "content": "Say hello."}]
        with self.assertRaisesRegex(litellm.AuthenticationError, "it is not known here"):
            litellm.completion(model=f"openai/{MODELS[0]}", messages=said, api_base=URL, api_key="cbk_wrong", num_retries=0)
        with self.assertRaises(litellm.NotFoundError):
            at_once("no-such-model", said)


if __name__ == "__main__":
    unittest.main()
