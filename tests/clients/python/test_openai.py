"""openai-python: answers, analyses, errors of code, tools of the client."""

import itertools
import unittest
from typing import Any

from gateway import ANALYSIS, HELLO, MODELS, SALES, TOTALS, WEATHER
from openai_gateway import OUTPUTS, Ask, Gateway, calls, interpreter, logs, raw_events


class Answers(Gateway):
    def each(self) -> list[tuple[str, str, Ask]]:
        return [(model, how, ask) for model in MODELS for how, ask in self.both().items()]

    def test_a_plain_answer_is_whole(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                response = ask(model=model, input="Say hello.", metadata={"ticket": "7"})
                self.assertEqual((response.status, response.output_text), ("completed", HELLO))
                self.assertEqual([item.type for item in response.output], ["message"])
                self.assertEqual((response.model, response.metadata), (model, {"ticket": "7"}))

    def test_a_stream_counts_its_events_and_says_what_the_response_holds(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                events = raw_events(self.openai, model=model, input="Say hello.")
                self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
                deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
                self.assertGreater(len(deltas), 1)
                self.assertEqual("".join(deltas), HELLO)
                self.assertEqual(
                    [kind for kind, _ in itertools.groupby(event.type for event in events)],
                    [
                        "response.created",
                        "response.in_progress",
                        "response.output_item.added",
                        "response.content_part.added",
                        "response.output_text.delta",
                        "response.output_text.done",
                        "response.content_part.done",
                        "response.output_item.done",
                        "response.completed",
                    ],
                )

    def test_code_is_streamed_before_it_runs(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                tools: Any = [interpreter()]
                events = raw_events(self.openai, model=model, input="Remember forty-two.", tools=tools)
                item = [event for event in events if getattr(event, "output_index", None) == 0]
                self.assertEqual(
                    [kind for kind, _ in itertools.groupby(event.type for event in item)],
                    [
                        "response.output_item.added",
                        "response.code_interpreter_call.in_progress",
                        "response.code_interpreter_call_code.delta",
                        "response.code_interpreter_call_code.done",
                        "response.code_interpreter_call.interpreting",
                        "response.code_interpreter_call.completed",
                        "response.output_item.done",
                    ],
                )
                begun, ended = item[0].item, item[-1].item
                self.assertEqual((begun.status, begun.code, begun.outputs), ("in_progress", "", None))
                self.assertTrue(begun.container_id.startswith("cntr_"))
                self.assertEqual((ended.id, ended.container_id), (begun.id, begun.container_id))
                # Nobody asked for the outputs.
                self.assertEqual((ended.status, ended.code, ended.outputs), ("completed", "kept = 42", None))
                deltas = [event.delta for event in item if event.type.endswith("code.delta")]
                self.assertEqual("".join(deltas), "kept = 42")

    def test_an_exception_is_repaired(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                response = ask(model=model, input="Divide by zero.", tools=[interpreter()], include=OUTPUTS)
                self.assertEqual((response.status, response.output_text), ("completed", "Now: repaired 1.0"))
                raised, repaired = calls(response)
                # Code that raises has run to its end.
                self.assertEqual((raised.status, repaired.status), ("completed", "completed"))
                self.assertIn("before", logs(raised))
                self.assertIn("ZeroDivisionError: division by zero", logs(raised))
                self.assertEqual(logs(repaired), "repaired 1.0\n")

    def test_a_function_is_handed_back_and_its_result_answered(self) -> None:
        tools: Any = [{"type": "function", "name": "get_weather", "parameters": WEATHER, "strict": True}, interpreter()]
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                asked: Any = [{"role": "user", "content": "What is the weather in Rome?"}]
                first = ask(model=model, input=asked, tools=tools, store=False)
                (call,) = first.output
                self.assertEqual((call.type, first.status, first.output_text), ("function_call", "completed", ""))
                self.assertEqual((call.name, call.arguments), ("get_weather", '{"city": "Rome"}'))
                asked += [call.to_dict(), {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
                second = ask(model=model, input=asked, tools=tools, store=False)
                self.assertEqual(second.output_text, "In Rome it is sunny.")

    def test_two_calls_at_once_both_come_back(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                response = ask(model=model, input="Two at once.", tools=[interpreter()], include=OUTPUTS)
                self.assertEqual(sorted(logs(call) for call in calls(response)), ["first\n", "second\n"])
                self.assertEqual([item.type for item in response.output][-1], "message")
                self.assertEqual(response.output_text, "first and second")


class Analysis(Gateway):
    """A table is uploaded; a chart and a file come back."""

    def check(self, ask: Ask, model: str, tool: dict[str, Any]) -> str:
        response = ask(model=model, input="Analyse sales.csv.", tools=[tool], include=OUTPUTS)
        self.assertEqual((response.status, response.output_text), ("completed", ANALYSIS))
        read, drawn = calls(response)
        self.assertEqual((read.status, drawn.status), ("completed", "completed"))
        self.assertEqual(logs(read), "{'north': 30.5, 'south': 20.0}\n")
        self.assert_picture(drawn)

        message = response.output[-1]
        citations = [
            note
            for part in message.content
            for note in part.annotations
            if note.type == "container_file_citation" and note.filename == "totals.csv"
        ]
        self.assertEqual(len(citations), 1)
        (citation,) = citations
        self.assertEqual(citation.container_id, drawn.container_id)
        # What is cited is the link to the file.
        self.assertEqual(
            response.output_text[citation.start_index : citation.end_index],
            "sandbox:/mnt/data/totals.csv",
        )
        files = self.openai.containers.files
        content = files.content.retrieve(citation.file_id, container_id=citation.container_id).read()
        self.assertEqual(content, TOTALS)
        about = files.retrieve(citation.file_id, container_id=citation.container_id)
        self.assertEqual(
            (about.path, about.bytes, about.source, about.object),
            ("/mnt/data/totals.csv", len(TOTALS), "assistant", "container.file"),
        )
        return drawn.container_id

    def test_a_file_of_the_files_api_is_there_for_the_code(self) -> None:
        for model in MODELS:
            for how, ask in self.both().items():
                with self.subTest(model=model, how=how):
                    file = self.openai.files.create(file=("sales.csv", SALES), purpose="user_data")
                    self.assertEqual((file.filename, file.bytes, file.status), ("sales.csv", len(SALES), "processed"))
                    self.check(ask, model, interpreter(file_ids=[file.id]))
                    self.assertEqual(self.openai.files.content(file.id).read(), SALES)
                    self.assertTrue(self.openai.files.delete(file.id).deleted)

    def test_a_container_is_made_filled_used_twice_and_deleted(self) -> None:
        for model in MODELS:
            for how, ask in self.both().items():
                with self.subTest(model=model, how=how):
                    container = self.openai.containers.create(name="sales", memory_limit="1g")
                    self.assertEqual((container.name, container.memory_limit), ("sales", "1g"))
                    put = self.openai.containers.files.create(container.id, file=("sales.csv", SALES))
                    self.assertEqual((put.path, put.source, put.bytes), ("/mnt/data/sales.csv", "user", len(SALES)))
                    self.assertEqual(self.check(ask, model, interpreter(container.id)), container.id)
                    # Variables live from response to response.
                    tools: Any = [interpreter(container.id)]
                    ask(model=model, input="Remember forty-two.", tools=tools)
                    kept = ask(model=model, input="What did you keep?", tools=tools)
                    self.assertEqual(kept.output_text, "kept 42")
                    paths = {file.path for file in self.openai.containers.files.list(container.id)}
                    self.assertLessEqual({"/mnt/data/sales.csv", "/mnt/data/totals.csv"}, paths)
                    self.assertIn(container.id, {other.id for other in self.openai.containers.list(limit=100)})
                    self.openai.containers.delete(container.id)
                    self.assertNotIn(container.id, {other.id for other in self.openai.containers.list(limit=100)})


if __name__ == "__main__":
    unittest.main()
