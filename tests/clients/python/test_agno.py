"""Agno, whose agents keep their sessions themselves and continue a reasoning model's by the response before."""

import unittest
from typing import Any

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIResponses
from agno.run.agent import RunEvent

from gateway import FIRST_TURN, KEY, MODELS, PATIENCE, REASONING_MODEL, SECOND_TURN, SUM, URL, new_key


def at_once(agent: Agent, said: str) -> str:
    return agent.run(said).content


def streamed(agent: Agent, said: str) -> str:
    return "".join(event.content or "" for event in agent.run(said, stream=True) if event.event == RunEvent.run_content)


def agent(model: str, session: str, **request: Any) -> Agent:
    responses = OpenAIResponses(id=model, base_url=URL, api_key=KEY, timeout=PATIENCE, max_retries=0, **request)
    tools = [{"type": "code_interpreter", "container": {"type": "auto"}}]
    return Agent(model=responses, tools=tools, db=InMemoryDb(), session_id=session, add_history_to_context=True)


class Agno(unittest.TestCase):
    def test_the_session_of_a_reasoning_model_keeps_its_sandbox(self) -> None:
        for ask in (at_once, streamed):
            with self.subTest(ask=ask.__name__):
                analyst = agent(REASONING_MODEL, new_key())
                self.assertEqual(ask(analyst, FIRST_TURN), "It is set.")
                self.assertEqual(ask(analyst, SECOND_TURN), SUM)

    def test_a_session_in_the_metadata_leads_text_alone_to_its_sandbox(self) -> None:
        for model in MODELS:
            for ask in (at_once, streamed):
                with self.subTest(model=model, ask=ask.__name__):
                    session = new_key()
                    analyst = agent(model, session, metadata={"session": session})
                    self.assertEqual(ask(analyst, FIRST_TURN), "It is set.")
                    self.assertEqual(ask(analyst, SECOND_TURN), SUM)


if __name__ == "__main__":
    unittest.main()
