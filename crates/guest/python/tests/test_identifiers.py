"""Digits that are identifiers stay text, and a text that has no separator says so."""

import random
import sys
import unittest
from unittest import mock

from cellblock_kernel.library import reading
from tests.needs import needs

_LOSE = ", which numbers lose"


def read(data, kind="csv"):
    notes = []
    frame = reading.read("t", kind, None, data if isinstance(data, bytes) else data.encode(), notes)
    return frame, notes


@needs("pandas")
class Identifiers(unittest.TestCase):
    def test_columns_with_leading_zeros_are_text_and_named(self):
        zeros = "begin with zeros, which numbers lose"
        for data, columns, note in (
            (
                "zip,n\n01067,1\n80331,2\n",
                {"zip": ["01067", "80331"], "n": [1, 2]},
                f"`zip` is left as text: values such as 01067 {zeros}",
            ),
            ('"zip"\r\n"80331"\r\n"01067"\r\n', {"zip": ["80331", "01067"]}, zeros),
            ("x;zip\n1,5;01067\n2,5;80331\n", {"x": [1.5, 2.5], "zip": ["01067", "80331"]}, zeros),
            ("z,z\n1,01\n2,2\n", {"z": [1, 2], "z.1": ["01", "2"]}, zeros),
            ("a,b\n01,02,03\n04,05,06\n", {"Unnamed: 0": ["01", "04"], "a": ["02", "05"], "b": ["03", "06"]}, zeros),
            ("i\n00099999999999999999999\n1\n", {"i": ["00099999999999999999999", "1"]}, zeros),
            ("x;y\n1.234,50;a\n007;b\n", {"x": ["1.234,50", "007"]}, zeros),
            ("x;y\n012.345.678;1,5\n", {"x": ["012.345.678"], "y": [1.5]}, zeros),
            ("d;m\n01.02;12,5\n03.04;13,5\n", {"d": ["01.02", "03.04"], "m": [12.5, 13.5]}, zeros),
            ("n;m\n-01;1\n2;2\n", {"n": ["-01", "2"], "m": [1, 2]}, zeros),
            ("n,m\n007.5,1\n2,2\n", {"n": ["007.5", "2"], "m": [1, 2]}, zeros),
            ("p\n+4915112345678\n4915112345679\n", {"p": ["+4915112345678", "4915112345679"]}, "begin with `+`"),
        ):
            for encoding in ("utf-8", "utf-16"):
                with self.subTest(data, encoding=encoding):
                    frame, notes = read(data.encode(encoding))
                    for name, values in columns.items():
                        self.assertEqual(frame[name].tolist(), values)
                    self.assertIn(note, notes[-1])
                    self.assertEqual(len(notes), len(set(notes)))
        self.assertEqual(read("id,n\n,1\n007,2\n")[0].id.fillna("").tolist(), ["", "007"])

    def test_numbers_stay_numbers(self):
        for data, values in (
            ("x\n0\n-0\n10\n", [0, 0, 10]),
            ("x\n0.5\n0.25\n", [0.5, 0.25]),
            ("x\n1e5\n", [1e5]),
            ("x\n+10000000\n-5\n", [10000000, -5]),
            ("x\n+5\n+7\n", [5, 7]),
            ("x\n1_000\n", ["1_000"]),
            ("x\n99999999999999999999\n", [99999999999999999999]),
        ):
            with self.subTest(data):
                frame, notes = read(data)
                self.assertEqual((frame.x.tolist(), notes), (values, []))

    def test_a_zero_is_found_anywhere_in_a_file(self):
        for rows in (1, 70_000, 349_525):
            frame, notes = read("n,zip\n" + "1,10\n" * rows + "2,0123\n" + "1,10\n" * 9)
            self.assertEqual((frame.zip.iloc[rows], frame.zip.iloc[0], len(notes)), ("0123", "10", 1))
        self.assertEqual(read("n,zip\n1,0123")[0].zip.tolist(), ["0123"])

    def test_every_column_of_digits_comes_back_equal(self):
        dice = random.Random(20261129)
        for _ in range(100):
            values = [
                f"{'0' * dice.choice([0, 0, 1, 3])}{dice.randint(0, 10 ** dice.randint(1, 25))}" for _ in range(dice.randint(1, 9))
            ]
            found = [str(value) for value in read("a,id\n" + "".join(f"x,{value}\n" for value in values))[0].id]
            self.assertEqual(found, values)

    def test_a_whole_number_that_a_float_rounds_beside_fractions_is_named(self):
        self.assertEqual(
            read("x\n9007199254740993\n1.5\n")[1],
            ["`x` has fractions, and numbers that a float rounds, such as 9007199254740993"],
        )
        self.assertEqual(read("x\n9007199254740992\n1.5\n")[1], [])

    @needs("polars")
    def test_an_image_with_only_polars_keeps_them(self):
        with mock.patch.dict(sys.modules, {"pandas": None}):
            for data in ("zip,n\n01067,1\n,2\n", "zip;n\n01067;1,5\n;2,5\n"):
                frame, notes = read(data)
                self.assertEqual(frame["zip"].to_list(), ["01067", None])
                self.assertIn(_LOSE, notes[-1])
            self.assertEqual(read("x;y\n1.234,50;a\n007;b\n")[0]["x"].to_list(), ["1.234,50", "007"])

    @needs("lxml")
    def test_cells_of_a_web_page_keep_them(self):
        page = "<html><table><tr><th>zip</th><th>n</th></tr><tr><td>01067</td><td>1</td></tr><tr><td></td><td>2</td></tr></table>"
        frame, notes = read(page, "xlsx")
        self.assertEqual((frame.zip.fillna("").tolist(), frame.n.tolist()), (["01067", ""], [1, 2]))
        self.assertIn(_LOSE, notes[0])
        frame, notes = read(page.replace("01067", "01.02"), "xlsx")
        self.assertEqual((frame.zip.fillna("").tolist(), frame.n.tolist()), (["01.02", ""], [1, 2]))
        self.assertIn(_LOSE, notes[0])


@needs("pandas")
class Unseparated(unittest.TestCase):
    def test_a_text_that_is_read_as_one_column_says_how_to_separate_it(self):
        none = "separator: none found, so each line is one value; "
        for data, note in (
            (
                "a;b\n1;2;3\n1;2\n",
                "separated by semicolon (`;`), lines have 2 to 3 fields; to read them as columns, begin the file with the line `sep=;`",
            ),
            ("a;b\n1,5;2\n3;4;5\n", "the line `sep=;`"),
            ("a|b\n1|2|3\n4|5\n", "the line `sep=|`"),
            ("a\tb\n1\t2\t3\n4\t5\n", "the line `sep=` and a tab"),
            ("a:b\n1:2\n", "the line `sep=:`"),
            ("a^b^c\n1^2^3\n", "lines have 3 fields"),
            (
                "a b c\n1 2 3\n",
                'lines have 3 words; to read them as columns, bind the file as bytes and use pd.read_csv(…, sep=r"\\s+")',
            ),
        ):
            with self.subTest(data):
                frame, notes = read(data)
                self.assertEqual(frame.shape[1], 1)
                self.assertTrue(notes[-1].startswith(none) and note in notes[-1], notes)

    def test_the_line_that_it_names_helps(self):
        self.assertEqual(list(read("sep=:\na:b\n1:2\n")[0].columns), ["a", "b"])

    def test_other_texts_have_no_such_note(self):
        for data in (
            "a,b\n1,2\n",
            "a;b\n1;2\n",
            "name\nAda\n",
            "Full name\nAda Lovelace\nBob Smith\n",
            "text\na;b\nc;d\n",
            '"a;b"\n"1;2"\n',
            "Time (hh:mm)\n10:30\n",
            "amount\n1,5\n2,75\n",
        ):
            with self.subTest(data):
                self.assertNotIn("none found", "; ".join(read(data)[1]))


if __name__ == "__main__":
    unittest.main()


@needs("pandas")
class Rounding(unittest.TestCase):
    def test_numbers_that_a_float_rounds_are_named(self):
        note = "has fractions, and numbers that a float rounds, such as"
        for kind, data, example in (
            ("ndjson", '{"id":9007199254740993}\n{"id":0.5}\n', "9007199254740993"),
            ("json", '[{"id":9007199254740993},{"id":0.5}]', "9007199254740993"),
            ("json", '{"id":[9007199254740993,0.5]}', "9007199254740993"),
            ("json", '{"columns":["id"],"data":[[9007199254740993],[0.5]]}', "9007199254740993"),
            ("csv", "id,v\n9007199254740993.0,1\n1.5,2\n", "9007199254740993.0"),
            ("csv", "id;v\n12345678901234567,89;1,5\n1,5;2,5\n", "12345678901234567,89"),
        ):
            with self.subTest(data):
                self.assertIn(f"`id` {note} {example}", read(data, kind)[1])
        for kind, data in (("json", '[{"id":9007199254740992},{"id":0.5}]'), ("csv", "id,v\n1e300,1\n9007199254740992.0,2\n")):
            with self.subTest(data):
                self.assertEqual(read(data, kind)[1], [])
