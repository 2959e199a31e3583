"""A smolagents agent runs its code in E2B's executor, which finds Cellblock by E2B's variables."""

import unittest

from smolagents import CodeAgent, Model, tool
from smolagents.models import ChatMessage


@tool
def double(number: int) -> int:
    """Doubles a number.

    Args:
        number: The number.
    """
    return number * 2


class Scripted(Model):
    """Answers with one block of code after the other, and keeps what it receives."""

    def __init__(self, *codes):
        super().__init__(model_id="scripted")
        self.codes = list(codes)
        self.told = []

    def generate(self, messages, **_):
        self.told.append(str(messages[-1].content))
        code = self.codes.pop(0)
        return ChatMessage(role="assistant", content=f"<code>\n{code}\n</code>")


class Agent(unittest.TestCase):
    def test_an_agent_keeps_state_calls_a_tool_and_answers(self):
        model = Scripted(
            "x = double(number=number)\nprint('x is', x)",
            "missing + 1",
            "final_answer({'answer': x + len(words), 'words': words})",
        )
        with CodeAgent(
            tools=[double], model=model, executor_type="e2b", verbosity_level=0
        ) as agent:
            answer = agent.run(
                "go", additional_args={"number": 20, "words": ["é", "b"]}
            )
        self.assertEqual(answer, {"answer": 42, "words": ["é", "b"]})
        self.assertIn("x is 40", model.told[1])
        self.assertIn("NameError", model.told[2])


if __name__ == "__main__":
    unittest.main()
