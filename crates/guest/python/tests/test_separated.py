"""Text with separated fields: separators, marks, encodings and compression are found, and what could mean two things stays text."""

import bz2
import gzip
import io
import itertools
import lzma
import random
import sys
import unittest
import zipfile

from cellblock_kernel.library import encodings, reading
from tests.needs import needs

_WORDS = {
    "utf-8": ["Müller", "Größe", "naïve", "plain", "東京"],
    "utf-8-sig": ["Müller", "Größe", "naïve", "plain", "東京"],
    "utf-16": ["Müller", "Größe", "naïve", "plain", "東京"],
    "utf-16-le": ["Müller", "Größe", "naïve", "plain", "text"],
    "cp1252": ["Müller", "Größe", "naïve", "plain", "“quoted”", "5 €"],
    "latin-1": ["Müller", "Größe", "naïve", "plain", "Ærø"],
    "gbk": ["北京", "上海", "广州", "数量", "公司名称"],
}
_SAID = {
    "utf-16": "encoding: UTF-16",
    "utf-16-le": "encoding: UTF-16 without a mark",
    "cp1252": "encoding: Windows-1252",
    "latin-1": "encoding: Windows-1252",
    "gbk": "encoding: GBK",
}
_SEPARATORS = {",": None, ";": "semicolon", "\t": "tab", "|": "vertical bar"}


def _zipped(data):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("t.csv", data)
    return archive.getvalue()


_COMPRESSED = {None: bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zip": _zipped}


def read(data, kind="csv"):
    notes = []
    frame = reading.read("t", kind, None, data if isinstance(data, bytes) else data.encode(), notes)
    return frame, notes


def number(value, decimal, grouped):
    text = f"{value:,.2f}" if grouped else f"{value:.2f}"
    return text if decimal == "." else text.replace(",", "\0").replace(".", ",").replace("\0", ".")


@needs("pandas")
class Separated(unittest.TestCase):
    def test_whole_numbers_with_gaps_stay_exact(self):
        large = 2**53 + 1
        for data, kind in (
            (f"id,x\n{large},a\n,b\n", "csv"),
            (f"id;x\n{large};1,5\n;2,5\n", "csv"),
            (f'{{"id": {large}}}\n{{"id": null}}\n', "ndjson"),
            (f'[{{"id": {large}}}, {{"x": 1}}]', "json"),
            (f'{{"id": [{large}, null]}}', "json"),
            (f'{{"columns": ["id"], "data": [[{large}], [null]]}}', "json"),
        ):
            with self.subTest(data):
                column = read(data, kind)[0]["id"]
                self.assertEqual((str(column.dtype), int(column.iloc[0]), column.isna().tolist()), ("Int64", large, [False, True]))
        column = read(f"id,x\n{2**70},a\n,b\n")[0]["id"]
        self.assertEqual(column.iloc[0], 2**70)
        self.assertEqual(str(read("x,y\n1e300,a\n,b\n")[0]["x"].dtype), "float64")

    def test_one_array_on_a_line_is_one_document(self):
        frame, notes = read('[{"a": 1}, {"a": 2}]\n', "ndjson")
        self.assertEqual((frame["a"].tolist(), notes), ([1, 2], ["format: one JSON document, not one per line"]))

    @needs("pyarrow")
    def test_times_of_day_with_nanoseconds_are_text(self):
        import datetime

        import pyarrow
        import pyarrow.parquet

        nanoseconds, microseconds = pyarrow.array([86399999999999, None], "time64[ns]"), pyarrow.array([1000, None], "time64[ns]")
        file = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table({"n": nanoseconds, "u": microseconds}), file)
        frame, _ = read(file.getvalue(), "parquet")
        self.assertEqual(frame.iloc[0].tolist(), ["23:59:59.999999999", datetime.time(microsecond=1)])
        self.assertEqual(frame.isna().iloc[1].tolist(), [True, True])

    def test_every_file_is_read_as_it_was_written(self):
        dice = random.Random(20260101)
        cases = itertools.product(_SEPARATORS, (".", ","), (False, True), _WORDS, _COMPRESSED)
        for separator, decimal, grouped, encoding, compression in cases:
            if separator == "," and (decimal == "," or grouped):
                continue
            with self.subTest(separator=separator, decimal=decimal, grouped=grouped, encoding=encoding, compression=compression):
                self._round_trip(dice, separator, decimal, grouped, encoding, compression)

    def _round_trip(self, dice, separator, decimal, grouped, encoding, compression):
        words = _WORDS[encoding]
        rows = [
            (dice.choice(words), dice.randint(0, 10**6), round(dice.uniform(-(10**5), 10**5), 2), f"{dice.randint(10, 28)}.12.2024")
            for _ in range(dice.randint(1, 30))
        ]
        # Some numbers in marks that can mean one thing only.
        rows.append((words[0], 7, 1234.56, "31.12.2024"))
        quote = dice.random() < 0.3
        fields = [[f'"{w}{separator}x"' if quote else w, str(c), number(n, decimal, grouped), d] for w, c, n, d in rows]
        end = dice.choice(["\n", "\r\n"])
        text = end.join(separator.join(row) for row in [["name", "count", "amount", "day"], *fields]) + end
        directive = separator in (";", "|") and dice.random() < 0.2
        if directive:
            text = f"sep={separator}{end}{text}"
        frame, notes = read(_COMPRESSED[compression](text.encode(encoding)))
        said = "; ".join(notes)
        self.assertEqual(list(frame.columns), ["name", "count", "amount", "day"], said)
        self.assertEqual(type(frame.index).__name__, "RangeIndex")
        self.assertEqual(frame.name.tolist(), [f"{w}{separator}x" if quote else w for w, *_ in rows], said)
        self.assertEqual(frame["count"].tolist(), [c for _, c, *_ in rows])
        self.assertEqual(frame.amount.tolist(), [n for _, _, n, _ in rows], said)
        self.assertEqual(frame.day.tolist(), [d for *_, d in rows])
        for told in (
            _SAID.get(encoding),
            compression and f"compression: {compression}",
            _SEPARATORS[separator] and f"separator: {_SEPARATORS[separator]}",
            directive and f"`sep={separator}`",
            decimal == "," and "decimal mark: comma",
            grouped and "thousands mark in `amount`",
        ):
            if told:
                self.assertIn(told, said)
        if separator == "," and encoding in ("utf-8", "utf-8-sig") and compression is None:
            self.assertEqual(notes, [])

    def test_a_comma_separated_file_means_what_pandas_reads(self):
        import pandas as pd

        dice = random.Random(7)
        values = [
            "",
            "1",
            "2.5",
            "1.234",
            "NA",
            "a;b",
            "x|y",
            "31.12.2024",
            '"1,5"',
            "007",
            "true",
            '"q ""r"""',
            "1e5",
            "'s'",
            " pad",
        ]
        for number in range(300):
            width = dice.randint(2, 5)
            rows = [[f"c{at}" for at in range(width)]] + [
                [dice.choice(values) for _ in range(width)] for _ in range(dice.randint(0, 20))
            ]
            text = "\n".join(map(",".join, rows)) + "\n"
            with self.subTest(number, text=text):
                frame, notes = read(text)
                expected = pd.read_csv(io.StringIO(text))
                texts = pd.read_csv(io.StringIO(text), dtype="str")
                identifiers = [name for name in texts if expected[name].dtype.kind in "if" and "007" in texts[name].tolist()]
                pd.testing.assert_frame_equal(frame, expected.assign(**texts[identifiers]))
                self.assertEqual(len(notes), len(identifiers))

    def test_what_could_mean_two_things_stays_text_and_is_named(self):
        text = "is left as text"
        for data, columns, note in (
            ("a;b\n1,234;x\n12,345;y\n", {"a": ["1,234", "12,345"]}, text),
            ("a;b\n1.234;x\n12.345;y\n", {"a": ["1.234", "12.345"]}, text),
            ("a;b\n1.234;2,5\n12.345;1,5\n", {"a": ["1.234", "12.345"], "b": [2.5, 1.5]}, text),
            ("a;b\n1.234;2.000,5\n12.345;1,5\n", {"a": [1234, 12345], "b": [2000.5, 1.5]}, "thousands mark in `a`: point"),
            ("a;b\n1.234.567;x\n2;y\n", {"a": [1234567, 2]}, "thousands mark in `a`: point"),
            ("a;b\n1'234.50;1 234,5\n2;3,25\n", {"a": [1234.5, 2], "b": [1234.5, 3.25]}, "thousands mark in `a`: apostrophe"),
            ("a;b\n1.5;2,5\n2.25;3,75\n", {"a": [1.5, 2.25], "b": [2.5, 3.75]}, "decimal mark in `b`: comma"),
            ("a;b\n1,5;x\n1.5;y\n", {"a": ["1,5", "1.5"]}, text),
            ("id,lat;lon\n1,5;6\n", {"id": [1], "lat;lon": ["5;6"]}, "semicolon (`;`) would give a table, too"),
            ("Name, Vorname;Betrag, EUR\nA, B;1,5\n", {"Name, Vorname": ["A, B"], "Betrag, EUR": [1.5]}, "separator: semicolon"),
            ("text\na;b\nc;d\n", {"text": ["a;b", "c;d"]}, None),
            ("text\nhello, world\nfoo\n", {"text": ["hello, world", "foo"]}, "separator: none"),
            ("amount\n1,5\n2,75\n", {"amount": [1.5, 2.75]}, "separator: none"),
            ("amount\n1,234\n2,345\n", {"amount": ["1,234", "2,345"]}, text),
            ("x\nr1,5\nr2,6\n", {"Unnamed: 0": ["r1", "r2"], "x": [5, 6]}, "rows are longer than the header"),
            ("a;b\nr1;5;1\nr2;6;2\n", {"Unnamed: 0": ["r1", "r2"], "a": [5, 6], "b": [1, 2]}, "rows are longer than the header"),
            ("a,b\n1,2,3\n4,5\n", {"Unnamed: 0": [1, 4], "a": [2, 5]}, "rows are longer than the header"),
            ("a;b\n0;2;3\n1;4;5\n", {"Unnamed: 0": [0, 1], "a": [2, 4], "b": [3, 5]}, "rows are longer than the header"),
            ("u;x\n18446744073709551616;1,5\n", {"u": [2**64], "x": [1.5]}, "decimal mark: comma"),
            ("id;x\n9007199254740993;1,5\n;2,5\n", {"x": [1.5, 2.5]}, "`id` has whole numbers that a float would round"),
            ("a,b\n1,2,\n3,4,\n", {"a": [1, 3], "b": [2, 4]}, "rows end with a separator"),
            ("'a;1';'b'\n'x;y';'2'\n", {"a;1": ["x;y"], "b": [2]}, "quotes: single"),
            ("sep=,\na,b\n1,2\n", {"a": [1], "b": [2]}, "separator: comma (`,`), from the line `sep=,`"),
            ("a;b;c\n", {"a": [], "b": [], "c": []}, "separator: semicolon"),
            ("day;x\n31.12.2024;1\n", {"day": ["31.12.2024"], "x": [1]}, "dates in `day` are left as text"),
        ):
            with self.subTest(data):
                frame, notes = read(data)
                self.assertEqual(type(frame.index).__name__, "RangeIndex")
                for name, values in columns.items():
                    self.assertEqual(frame[name].tolist(), values, notes)
                if note is None:
                    self.assertEqual(notes, [])
                else:
                    self.assertIn(note, "; ".join(notes))

    def test_numbers_beyond_the_first_lines_never_change(self):
        counts = "n;s\n" + "".join(f"{n:,};x\n".replace(",", ".") for n in range(1, 30_000))
        frame, notes = read(counts)
        self.assertEqual(frame.n.iloc[-1], "29.999")
        self.assertIn("`n` is left as text", notes[-1])
        amounts = "n;s\n" + "".join(number(n + 0.25, ",", True) + ";x\n" for n in range(30_000))
        frame, notes = read(amounts)
        self.assertEqual(frame.n.sum(), sum(n + 0.25 for n in range(30_000)))
        self.assertIn("thousands mark in `n`: point", notes)
        mixed = "n;s\n" + "1,5;x\n" * 20_000 + "about 2;x\n"
        self.assertEqual(read(mixed)[0].n.iloc[0], "1,5")

    def test_tab_separated_files_keep_their_meaning_unless_they_have_no_tab(self):
        self.assertEqual(read("x\ty\n1.234\t2\n", "tsv")[0].x.tolist(), [1.234])
        self.assertEqual(read("x\ty\n1.234\t2\n", "tsv")[1], [])
        self.assertEqual(read("a;b\n1;2,5\n", "tsv")[0].b.tolist(), [2.5])

    @needs("polars")
    def test_an_image_with_only_polars_or_neither_reads_the_same_layouts(self):
        data = "sep=;\nname;amount;n\nMüller;1.234,50;1\n".encode("cp1252")
        hidden = {"pandas": None}
        before = {name: sys.modules.get(name) for name in ("pandas", "polars")}
        try:
            sys.modules.update(hidden)
            frame, _ = read(data)
            self.assertEqual(frame.rows(), [("Müller", 1234.5, 1)])
            self.assertEqual(read("a;b\n1;2,5\n")[0].rows(), [(1, 2.5)])
            self.assertEqual(read("a,b\n1,2\n")[0].rows(), [(1, 2)])
            sys.modules["polars"] = None
            self.assertEqual(read(data)[0], [{"name": "Müller", "amount": "1.234,50", "n": "1"}])
        finally:
            sys.modules.update({name: module for name, module in before.items() if module is not None})
            for name in (name for name, module in before.items() if module is None):
                sys.modules.pop(name, None)

    def test_damaged_and_crowded_archives_are_named(self):
        whole = gzip.compress(b"a;b\n" + b"1;2\n" * 1000)
        several = io.BytesIO()
        with zipfile.ZipFile(several, "w") as archive:
            archive.writestr("x.csv", "a\n1\n")
            archive.writestr("y.csv", "a\n1\n")
        for data, message in (
            (whole[:-9], "damaged gzip data"),
            (whole[:30], "damaged gzip data"),
            (several.getvalue(), "the zip archive has 2 files (x.csv, y.csv)"),
            (b"PK\x03\x04not an archive", "damaged zip archive"),
        ):
            with self.subTest(message), self.assertRaises(reading.BadInput) as raised:
                read(data)
            self.assertIn(message, str(raised.exception))


class Encodings(unittest.TestCase):
    def test_languages_are_told_apart(self):
        for codec, expected, text in (
            ("cp1252", "Windows-1252", "name,x\ncréée,1\nFaß,2\n"),
            ("cp1252", "Windows-1252", "ÄÖÜ,x\nGRÖSSE,1\n"),
            ("gbk", "GBK", "姓名,城市\n张伟,北京\n王芳,上海\n"),
            ("big5", "Big5", "姓名,城市\n張偉,臺北\n王芳,高雄\n李娜,臺南\n"),
            ("cp949", "EUC-KR", "이름,도시\n김민수,서울\n이영희,부산\n박지성,대구광역시\n"),
            ("cp932", "Shift_JIS", "名前,都市\nさとう,とうきょう\nタナカ,京都\n"),
            ("cp1251", "Windows-1251", "имя;город\nИван;Москва\nОльга;Казань\n"),
        ):
            with self.subTest(codec):
                self.assertEqual(encodings.legacy(text.encode(codec))[0][1], expected)

    def test_a_few_broken_bytes_in_utf_8_are_not_another_encoding(self):
        with self.assertRaises(reading.BadInput) as raised:
            reading.read("t", "csv", None, "a\nééééé".encode() + b"\xff\n")
        self.assertIn("not UTF-8: byte 0xff at offset 12", str(raised.exception))


@needs("pandas")
class Lines(unittest.TestCase):
    def test_line_delimited_json_is_read_under_either_name(self):
        lines, array = b'{"a": 1}\n{"a": 2}\n', b'[{"a": 1},\n {"a": 2}]\n'
        for kind, data, note in (
            ("json", lines, ["format: one JSON document per line"]),
            ("ndjson", lines, []),
            ("json", array, []),
            ("ndjson", array, ["format: one JSON document, not one per line"]),
            ("ndjson", gzip.compress(lines), ["compression: gzip"]),
            ("json", lines.decode().encode("utf-16"), ["encoding: UTF-16", "format: one JSON document per line"]),
        ):
            with self.subTest(kind=kind, data=data):
                frame, notes = read(data, kind)
                self.assertEqual((frame.a.tolist(), notes), ([1, 2], note))
