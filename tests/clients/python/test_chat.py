"""openai-python's `chat.completions` and `conversations`: answers, code that runs inside, functions, JSON, what is refused."""

from typing import Any

from openai import APIStatusError, BadRequestError
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from gateway import ANALYSIS, HELLO, MODELS, SALES, TOTALS, WEATHER
from openai_gateway import Gateway, interpreter

WEATHER_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": WEATHER, "strict": True},
}
INTERPRETER: dict[str, Any] = {"type": "code_interpreter"}


class City(BaseModel):
    city: str
    sunny: bool


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


class Chat(Gateway):
    def at_once(self, **request: Any) -> ChatCompletion:
        return self.openai.chat.completions.create(**request)

    def streamed(self, **request: Any) -> ChatCompletion:
        with self.openai.chat.completions.stream(**request) as stream:
            return stream.get_final_completion()

    def each(self) -> list[tuple[str, str, Any]]:
        return [(model, how, ask) for model in MODELS for how, ask in {"at once": self.at_once, "streamed": self.streamed}.items()]

    def test_a_plain_answer_is_whole(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                completion = ask(model=model, messages=[user("Say hello.")])
                (choice,) = completion.choices
                self.assertEqual((choice.message.role, choice.message.content), ("assistant", HELLO))
                self.assertEqual((choice.finish_reason, choice.message.tool_calls), ("stop", None))
                self.assertEqual(completion.model, model)

    def test_a_stream_comes_in_pieces_and_ends_with_its_usage(self) -> None:
        options: Any = {"include_usage": True}
        for model in MODELS:
            with self.subTest(model=model):
                chunks = list(
                    self.openai.chat.completions.create(
                        model=model, messages=[user("Say hello.")], stream=True, stream_options=options
                    )
                )
                *told, last = chunks
                pieces = [chunk.choices[0].delta.content for chunk in told if chunk.choices[0].delta.content]
                self.assertGreater(len(pieces), 1)
                self.assertEqual("".join(pieces), HELLO)
                self.assertEqual([chunk.choices[0].finish_reason for chunk in told][-1], "stop")
                self.assertEqual(last.choices, [])
                assert last.usage is not None
                self.assertEqual(last.usage.total_tokens, last.usage.prompt_tokens + last.usage.completion_tokens)

    def test_code_runs_inside_and_its_files_are_linked(self) -> None:
        file = self.openai.files.create(file=("sales.csv", SALES), purpose="user_data")
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                tools: Any = [interpreter(file_ids=[file.id])]
                completion = ask(model=model, messages=[user("Analyse sales.csv.")], tools=tools)
                message = completion.choices[0].message
                self.assertEqual((completion.choices[0].finish_reason, message.tool_calls), ("stop", None))
                cited = {note.url_citation.title: note.url_citation for note in message.annotations or []}
                table = cited["totals.csv"]
                answer = ANALYSIS.replace("sandbox:/mnt/data/totals.csv", table.url)
                # The chart is linked after what the model has said.
                self.assertTrue(message.content.startswith(answer + "\n\n!["), message.content)
                self.assertEqual(message.content[table.start_index : table.end_index], table.url)
                self.assertEqual(self.openai.get(table.url.removeprefix("/v1"), cast_to=bytes), TOTALS)

    def test_an_exception_is_repaired(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                completion = ask(model=model, messages=[user("Divide by zero.")], tools=[INTERPRETER])
                self.assertEqual(completion.choices[0].message.content, "Now: repaired 1.0")

    def test_a_function_is_handed_back_and_its_result_answered(self) -> None:
        tools: Any = [WEATHER_TOOL, INTERPRETER]
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                messages: list[Any] = [user("What is the weather in Rome?")]
                first = ask(model=model, messages=messages, tools=tools)
                (choice,) = first.choices
                (call,) = choice.message.tool_calls or []
                self.assertEqual((choice.finish_reason, choice.message.content or ""), ("tool_calls", ""))
                self.assertEqual((call.function.name, call.function.arguments), ("get_weather", '{"city": "Rome"}'))
                messages += [
                    choice.message.to_dict(),
                    {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
                ]
                second = ask(model=model, messages=messages, tools=tools)
                self.assertEqual(second.choices[0].message.content, "In Rome it is sunny.")

    def test_an_answer_has_the_form_that_is_asked_for(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                completion = self.openai.chat.completions.parse(
                    model=model, messages=[user("Describe Rome as JSON.")], response_format=City
                )
                self.assertEqual(completion.choices[0].message.parsed, City(city="Rome", sunny=True))

    def test_what_cannot_be_served_is_refused_by_its_name(self) -> None:
        refused: list[tuple[dict[str, Any], str]] = [
            ({"n": 2}, "n"),
            ({"store": True}, "store"),
            ({"logprobs": True}, "logprobs"),
            ({"functions": [{"name": "f"}]}, "functions"),
            ({"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}, "modalities"),
        ]
        for change, param in refused:
            with self.subTest(param=param):
                with self.assertRaises(BadRequestError) as raised:
                    self.at_once(model=MODELS[0], messages=[user("Say hello.")], **change)
                self.assertEqual((raised.exception.param, raised.exception.code), (param, "unsupported_parameter"))

    def test_a_provider_that_refuses_is_an_error(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                with self.assertRaises(APIStatusError) as raised:
                    self.at_once(model=model, messages=[user("Refuse.")])
                self.assertEqual(raised.exception.code, "context_length_exceeded")


class Conversations(Gateway):
    def test_a_conversation_goes_on_and_keeps_its_items(self) -> None:
        for model in MODELS:
            for how, ask in self.both().items():
                with self.subTest(model=model, how=how):
                    conversation = self.openai.conversations.create(metadata={"ticket": "7"})
                    self.assertEqual(conversation.metadata, {"ticket": "7"})
                    going = {"model": model, "conversation": conversation.id}
                    ask(input="My name is Ada.", **going)
                    self.assertEqual(ask(input="What is my name?", **going).output_text, "Ada")
                    ask(input="Remember forty-two.", tools=[interpreter()], **going)
                    kept = ask(input="What did you keep?", tools=[interpreter()], **going)
                    self.assertEqual(kept.output_text, "kept 42")
                    assert kept.conversation is not None
                    self.assertEqual(kept.conversation.id, conversation.id)
                    # One page holds 20 items unless more are asked for; the client reads them all.
                    items = list(self.openai.conversations.items.list(conversation.id, order="asc", limit=3))
                    self.assertEqual(
                        [item.type for item in items],
                        ["message"] * 5 + ["code_interpreter_call"] + ["message"] * 2 + ["code_interpreter_call", "message"],
                    )
                    one = self.openai.conversations.items.retrieve(items[0].id or "", conversation_id=conversation.id)
                    self.assertEqual(one.to_dict(), items[0].to_dict())
                    self.assertTrue(self.openai.conversations.delete(conversation.id).deleted)
