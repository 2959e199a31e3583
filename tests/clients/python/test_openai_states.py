"""openai-python: what outlives a request, what is broken off, what is refused."""

import time
import unittest
from collections.abc import Callable, Iterable
from typing import Any

import openai
from openai.types.responses import Response, ResponseStreamEvent

from gateway import HELLO, KEY, MODELS, PAUSES
from openai_gateway import OUTPUTS, Gateway, calls, client, interpreter, logs

LIMIT = 60.0


class Kept(Gateway):
    def test_a_conversation_goes_on_from_the_response_before(self) -> None:
        for model in MODELS:
            for how, ask in self.both().items():
                with self.subTest(model=model, how=how):
                    first = ask(model=model, input="My name is Ada.")
                    second = ask(model=model, input="What is my name?", previous_response_id=first.id)
                    self.assertEqual((second.output_text, second.previous_response_id), ("Ada", first.id))
                    alone = ask(model=model, input="What is my name?")
                    self.assertEqual(alone.output_text, "I was never told.")

    def test_a_response_is_read_again_and_deleted(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                made = self.openai.responses.create(model=model, input="Two at once.", tools=[interpreter()], include=OUTPUTS)
                read = self.openai.responses.retrieve(made.id)
                self.assertEqual(read.output_text, made.output_text)
                self.assertEqual([item.id for item in read.output], [item.id for item in made.output])
                asked = list(self.openai.responses.input_items.list(made.id))
                self.assertEqual([part.text for item in asked for part in item.content], ["Two at once."])
                self.openai.responses.delete(made.id)
                with self.assertRaises(openai.NotFoundError):
                    self.openai.responses.retrieve(made.id)

    def test_what_is_not_stored_is_not_found(self) -> None:
        made = self.openai.responses.create(model=MODELS[0], input="Say hello.", store=False)
        with self.assertRaises(openai.NotFoundError):
            self.openai.responses.retrieve(made.id)

    def test_a_function_is_answered_through_the_response_before(self) -> None:
        tools: Any = [{"type": "function", "name": "get_weather", "parameters": {"type": "object"}}]
        for model in MODELS:
            with self.subTest(model=model):
                first = self.openai.responses.create(model=model, input="What is the weather in Rome?", tools=tools)
                output: Any = {"type": "function_call_output", "call_id": first.output[0].call_id, "output": "sunny"}
                second = self.openai.responses.create(model=model, input=[output], tools=tools, previous_response_id=first.id)
                self.assertEqual(second.output_text, "In Rome it is sunny.")


class Background(Gateway):
    def until_ended(self, response: Response) -> Response:
        deadline = time.monotonic() + LIMIT
        while response.status in ("queued", "in_progress"):
            self.assertLess(time.monotonic(), deadline, f"still {response.status}")
            time.sleep(0.05)
            response = self.openai.responses.retrieve(response.id)
        return response

    def test_a_response_is_made_while_nobody_waits(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                begun = self.openai.responses.create(
                    model=model, input="Divide by zero.", tools=[interpreter()], include=OUTPUTS, background=True
                )
                self.assertIn(begun.status, ("queued", "in_progress"))
                self.assertTrue(begun.background)
                ended = self.until_ended(begun)
                self.assertEqual((ended.status, ended.output_text), ("completed", "Now: repaired 1.0"))
                self.assertEqual(logs(calls(ended)[1]), "repaired 1.0\n")


class Interrupting(Gateway):
    def assert_interrupted(self, model: str, break_off: Callable[..., None]) -> None:
        """Breaking off a request ends its code: long before its time is over, the same container runs other code."""
        for pause in PAUSES:
            container = self.openai.containers.create(name="interrupted")
            tools: Any = [interpreter(container.id)]
            break_off(pause, model=model, input="Run for ever.", tools=tools)
            after = self.openai.responses.create(model=model, input="What was there?", tools=tools, timeout=LIMIT)
            if after.output_text == "['began', 'ended']":
                return
            # It was broken off sooner than it began.
            self.assertIn(after.output_text, ["[]", "['ended']"])
        self.fail("the code never began")


def until_interpreting(events: Iterable[ResponseStreamEvent], pause: float) -> str:
    """Follows a stream until its code is about to run, and waits `pause` seconds; returns the response's id."""
    response = ""
    for event in events:
        if event.type == "response.created":
            response = event.response.id
        if event.type == "response.code_interpreter_call.interpreting":
            time.sleep(pause)
            return response
    raise AssertionError("no code was run")


class Cancelled(Interrupting):
    def test_a_response_is_cancelled_and_its_code_with_it(self) -> None:
        def cancel(pause: float, **request: Any) -> None:
            with self.openai.responses.create(background=True, stream=True, **request) as stream:
                response = until_interpreting(stream, pause)
            # Nobody listens any more, and it goes on.
            self.assertEqual(self.openai.responses.retrieve(response).status, "in_progress")
            self.assertEqual(self.openai.responses.cancel(response).status, "cancelled")
            self.assertEqual(self.openai.responses.retrieve(response).status, "cancelled")

        for model in MODELS:
            with self.subTest(model=model):
                self.assert_interrupted(model, cancel)


class BrokenOff(Interrupting):
    def test_a_stream_that_is_closed_interrupts_its_code(self) -> None:
        def close(pause: float, **request: Any) -> None:
            with self.openai.responses.create(stream=True, **request) as stream:
                until_interpreting(stream, pause)

        for model in MODELS:
            with self.subTest(model=model):
                self.assert_interrupted(model, close)


class Refused(Gateway):
    def test_an_unknown_model_is_not_found(self) -> None:
        for stream in (False, True):
            with self.subTest(stream=stream):
                with self.assertRaises(openai.NotFoundError) as caught:
                    self.openai.responses.create(model="no-such-model", input="Say hello.", stream=stream)
                self.assertEqual((caught.exception.code, caught.exception.param), ("model_not_found", "model"))

    def test_a_wrong_key_is_refused(self) -> None:
        for key in ("cbk_wrong", KEY + "x", KEY[:-1]):
            with client(key) as stranger, self.assertRaises(openai.AuthenticationError) as caught:
                stranger.responses.create(model=MODELS[0], input="Say hello.")
            self.assertEqual(caught.exception.status_code, 401)
            self.assertNotIn(key, str(caught.exception))

    def test_a_wrong_key_is_refused_before_an_upload_is_read_and_the_client_hears_it(self) -> None:
        with client("cbk_wrong") as stranger, self.assertRaises(openai.AuthenticationError):
            stranger.files.create(file=("large.bin", bytes(4 << 20)), purpose="user_data")

    def test_a_body_that_is_too_large_is_refused(self) -> None:
        with self.assertRaises(openai.APIStatusError) as caught:
            self.openai.responses.create(model=MODELS[0], input="x" * (17 << 20))
        self.assertEqual(caught.exception.status_code, 413)
        # Nothing is the worse for it.
        self.assertEqual(self.openai.responses.create(model=MODELS[0], input="Say hello.").output_text, HELLO)

    def test_what_nobody_understands_is_told_with_its_place(self) -> None:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"input": 7}, "input"),
            ({"input": "x", "temperature": 3}, "temperature"),
            ({"input": "x", "tools": [{"type": "code_interpreter"}]}, "tools[0].container"),
            ({"input": "x", "previous_response_id": "resp_none"}, "previous_response_id"),
            ({"input": "x", "tools": [interpreter("cntr_none")]}, "tools[0].container"),
            (
                {
                    "input": "x",
                    "tools": [interpreter(network_policy={"type": "allowlist", "allowed_domains": ["example.com"]})],
                },
                "tools[0].container.network_policy.type",
            ),
        ]
        for request, place in wrong:
            with self.subTest(place):
                with self.assertRaises((openai.BadRequestError, openai.NotFoundError)) as caught:
                    self.openai.responses.create(model=MODELS[0], **request)
                self.assertEqual(caught.exception.param, place)

    def test_the_models_are_listed(self) -> None:
        self.assertLessEqual(set(MODELS), {model.id for model in self.openai.models.list()})


if __name__ == "__main__":
    unittest.main()
