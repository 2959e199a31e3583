"""openai-python pointed at the gateway, and what its tests ask for again and again."""

import base64
import unittest
from collections.abc import Callable
from typing import Any

from openai import OpenAI
from openai.types.responses import Response, ResponseCodeInterpreterToolCall, ResponseStreamEvent

from gateway import KEY, PATIENCE, PNG, URL

OUTPUTS = ["code_interpreter_call.outputs"]

# Sends a request, and gives the response at its end.
Ask = Callable[..., Response]


def client(key: str = KEY) -> OpenAI:
    """A client that refuses answers which do not have the forms that it knows."""
    return OpenAI(base_url=URL, api_key=key, timeout=PATIENCE, max_retries=0, _strict_response_validation=True)


def interpreter(container: str | None = None, **auto: Any) -> dict[str, Any]:
    return {"type": "code_interpreter", "container": container or {"type": "auto", **auto}}


def at_once(openai: OpenAI) -> Ask:
    return lambda **request: openai.responses.create(**request)


def streamed(openai: OpenAI) -> Ask:
    def ask(**request: Any) -> Response:
        with openai.responses.stream(**request) as stream:
            for _ in stream:
                pass
            return stream.get_final_response()

    return ask


def raw_events(openai: OpenAI, **request: Any) -> list[ResponseStreamEvent]:
    with openai.responses.create(stream=True, **request) as stream:
        return list(stream)


def calls(response: Response) -> list[ResponseCodeInterpreterToolCall]:
    return [item for item in response.output if item.type == "code_interpreter_call"]


def logs(call: ResponseCodeInterpreterToolCall) -> str:
    return "".join(output.logs for output in call.outputs or [] if output.type == "logs")


class Gateway(unittest.TestCase):
    """A test with a client, whose requests are made at once and as streams."""

    def setUp(self) -> None:
        self.openai = client()
        self.addCleanup(self.openai.close)

    def both(self) -> dict[str, Ask]:
        return {"at once": at_once(self.openai), "streamed": streamed(self.openai)}

    def assert_picture(self, call: ResponseCodeInterpreterToolCall) -> None:
        """The call's one picture is a PNG with something in it."""
        urls = [output.url for output in call.outputs or [] if output.type == "image"]
        self.assertEqual(len(urls), 1)
        if urls[0].startswith("data:"):
            kind, encoded = urls[0].split(",", 1)
            self.assertEqual(kind, "data:image/png;base64")
            picture = base64.b64decode(encoded, validate=True)
        else:
            picture = self.openai.get(urls[0], cast_to=bytes)
        self.assertTrue(picture.startswith(PNG))
        self.assertGreater(len(picture), 1000)
