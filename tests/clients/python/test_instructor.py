"""instructor in its default mode, which has a function of the model's own answer called over Chat Completions."""

import unittest

import instructor
from openai import OpenAI
from pydantic import BaseModel

from gateway import KEY, MODELS, PATIENCE, URL

ASKED = [{"role": "user", "content": "Ada is thirty-six years old."}]


class Person(BaseModel):
    """A person that was spoken of."""

    name: str
    age: int


class Instructor(unittest.TestCase):
    def setUp(self) -> None:
        openai = OpenAI(base_url=URL, api_key=KEY, timeout=PATIENCE, max_retries=0)
        self.addCleanup(openai.close)
        self.instructor = instructor.from_openai(openai)

    def test_an_answer_of_the_wrong_type_is_sent_back_and_repaired(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                person, completion = self.instructor.chat.completions.create_with_completion(
                    model=model, messages=ASKED, response_model=Person, max_retries=1
                )
                self.assertEqual(person.model_dump(), {"name": "Ada", "age": 36})
                self.assertEqual(completion.choices[0].message.tool_calls[0].function.name, "Person")

    def test_an_answer_is_streamed_in_parts(self) -> None:
        for model in MODELS:
            with self.subTest(model=model):
                said = [{"role": "user", "content": "Bea is seven years old."}]
                parts = list(self.instructor.chat.completions.create_partial(model=model, messages=said, response_model=Person))
                self.assertEqual(parts[-1].model_dump(), {"name": "Bea", "age": 7})
                self.assertIn({"name": "Bea", "age": None}, [part.model_dump() for part in parts])


if __name__ == "__main__":
    unittest.main()
