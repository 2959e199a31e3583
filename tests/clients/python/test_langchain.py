"""LangChain's OpenAI client, which speaks the Responses API when told to."""

import unittest
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import openai
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from gateway import ANALYSIS, FIRST_TURN, HELLO, KEY, MODELS, PATIENCE, SALES, SECOND_TURN, SUM, TOTALS, URL
from openai_gateway import OUTPUTS, client, interpreter

Chat = Runnable[LanguageModelInput, AIMessage]


@tool
def get_weather(city: str) -> str:
    """Tells the weather of a city."""
    return "sunny" if city == "Rome" else "unknown"


def chat(model: str, key: str = KEY, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model=model,
        base_url=URL,
        api_key=key,
        use_responses_api=True,
        include=OUTPUTS,
        timeout=PATIENCE,
        max_retries=0,
        **options,
    )


def at_once(chat: Chat, said: Any) -> AIMessage:
    return chat.invoke(said)


def streamed(chat: Chat, said: Any) -> AIMessage:
    return reduce(add, chat.stream(said))


HOW: dict[str, Callable[[Chat, Any], AIMessage]] = {"at once": at_once, "streamed": streamed}


def ran(message: AIMessage) -> list[dict[str, Any]]:
    return [block for block in message.content if block["type"] == "code_interpreter_call"]


def logs(call: dict[str, Any]) -> str:
    return "".join(output["logs"] for output in call["outputs"] if output["type"] == "logs")


class LangChain(unittest.TestCase):
    def each(self) -> list[tuple[str, str, Callable[[Chat, Any], AIMessage]]]:
        return [(model, how, ask) for model in MODELS for how, ask in HOW.items()]

    def test_a_plain_answer_is_whole(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                self.assertEqual(ask(chat(model), "Say hello.").text, HELLO)

    def test_an_exception_is_repaired_and_the_conversation_is_sent_back(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                analyst = chat(model).bind_tools([interpreter()])
                asked = HumanMessage("Divide by zero.")
                answer = ask(analyst, [asked])
                self.assertEqual(answer.text, "Now: repaired 1.0")
                raised, repaired = ran(answer)
                self.assertIn("ZeroDivisionError: division by zero", logs(raised))
                self.assertEqual(logs(repaired), "repaired 1.0\n")
                self.assertEqual(ask(analyst, [asked, answer, HumanMessage("Say hello.")]).text, HELLO)

    def test_messages_that_are_sent_back_lead_to_their_sandbox(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                analyst = chat(model).bind_tools([interpreter()])
                asked = HumanMessage(FIRST_TURN)
                answer = ask(analyst, [asked])
                self.assertEqual(ask(analyst, [asked, answer, HumanMessage(SECOND_TURN)]).text, SUM)

    def test_an_uploaded_table_becomes_a_chart_and_a_file(self) -> None:
        with client() as files:
            for model, how, ask in self.each():
                with self.subTest(model=model, how=how):
                    file = files.files.create(file=("sales.csv", SALES), purpose="user_data")
                    answer = ask(chat(model).bind_tools([interpreter(file_ids=[file.id])]), "Analyse sales.csv.")
                    self.assertEqual(answer.text, ANALYSIS)
                    read, drawn = ran(answer)
                    self.assertEqual(logs(read), "{'north': 30.5, 'south': 20.0}\n")
                    self.assertEqual([output["type"] for output in drawn["outputs"]].count("image"), 1)
                    notes = [note for block in answer.content for note in block.get("annotations", [])]
                    (cited,) = [note for note in map(plain, notes) if note.get("filename") == "totals.csv"]
                    content = files.containers.files.content.retrieve(cited["file_id"], container_id=cited["container_id"])
                    self.assertEqual(content.read(), TOTALS)

    def test_a_function_is_called_and_its_result_answered(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                tools = chat(model).bind_tools([get_weather, interpreter()])
                asked = HumanMessage("What is the weather in Rome?")
                answer = ask(tools, [asked])
                (call,) = answer.tool_calls
                self.assertEqual((call["name"], call["args"]), ("get_weather", {"city": "Rome"}))
                told = ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])
                self.assertEqual(ask(tools, [asked, answer, told]).text, "In Rome it is sunny.")

    def test_a_conversation_goes_on_from_the_response_before(self) -> None:
        for model, how, ask in self.each():
            with self.subTest(model=model, how=how):
                remembering = chat(model, use_previous_response_id=True)
                first = ask(remembering, "My name is Ada.")
                second = ask(remembering, ["My name is Ada.", first, "What is my name?"])
                self.assertEqual(second.text, "Ada")

    def test_a_wrong_key_and_an_unknown_model_are_refused(self) -> None:
        with self.assertRaises(openai.AuthenticationError):
            chat(MODELS[0], key="cbk_wrong").invoke("Say hello.")
        with self.assertRaises(openai.NotFoundError):
            chat("no-such-model").invoke("Say hello.")


def plain(note: dict[str, Any]) -> dict[str, Any]:
    """A citation with the fields that LangChain does not know beside the others."""
    return {**note, **note.get("extras", {})}


if __name__ == "__main__":
    unittest.main()
