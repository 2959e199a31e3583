"""Workbooks: all sheets are named, and files that only have the name of a workbook say what they are."""

import importlib.util
import io
import unittest
import warnings
import zipfile
from unittest import mock

from cellblock_kernel.library import reading
from tests.driver import KernelTest
from tests.needs import needs

_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)


def read(data):
    notes = []
    return reading.read("t", "xlsx", None, data, notes), notes


def refused(data):
    try:
        read(data)
    except reading.BadInput as error:
        return str(error)
    raise AssertionError("it was read")


def _open_document(*sheets):
    """An OpenDocument spreadsheet whose sheets have one column, `of`, with their name."""
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    urn = "urn:oasis:names:tc:opendocument:xmlns"
    names = f'xmlns:office="{urn}:office:1.0" xmlns:table="{urn}:table:1.0" xmlns:text="{urn}:text:1.0"'

    def row(value):
        cell = f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
        return f"<table:table-row>{cell}</table:table-row>"

    tables = "".join(f'<table:table table:name="{sheet}">{row("of")}{row(sheet)}</table:table>' for sheet in sheets)
    manifest = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    entries = (
        f'<m:file-entry m:full-path="/" m:media-type="{kind}"/><m:file-entry m:full-path="content.xml" m:media-type="text/xml"/>'
    )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("mimetype", kind)
        archive.writestr("META-INF/manifest.xml", f'<m:manifest xmlns:m="{manifest}">{entries}</m:manifest>')
        body = f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
        archive.writestr("content.xml", f"<office:document-content {names}>{body}</office:document-content>")
    return content.getvalue()


@needs("pandas", "openpyxl")
class Workbooks(unittest.TestCase):
    def test_only_empty_cells_and_formulas_without_a_result_are_missing(self):
        import openpyxl
        import pandas as pd

        book = openpyxl.Workbook()
        for row in (["code", "n"], ["NA", 1], ["None", None], ["NL", "=SUM(B2:B3)"]):
            book.active.append(row)
        content = io.BytesIO()
        book.save(content)
        frame, notes = read(content.getvalue())
        self.assertEqual(frame["code"].tolist(), ["NA", "None", "NL"])
        self.assertEqual(frame["n"].isna().tolist(), [False, True, True])
        formulas = (
            "formulas without a stored result are missing values; a spreadsheet program stores them when it saves the workbook"
        )
        self.assertEqual(notes, [formulas])
        gaps = io.BytesIO()
        pd.DataFrame({"a": [1, None]}).to_excel(gaps, index=False)
        self.assertEqual(read(gaps.getvalue())[1], [])

    def written(self, engine, *sheets):
        import pandas as pd

        content = io.BytesIO()
        with pd.ExcelWriter(content, engine=engine) as writer:
            for sheet in sheets:
                pd.DataFrame({"a": [1, 2], "of": sheet}).to_excel(writer, sheet_name=sheet, index=False)
        return content.getvalue()

    def test_the_first_sheet_is_read_and_the_others_are_named(self):
        frame, notes = read(self.written("openpyxl", "Only"))
        self.assertEqual((frame.of.tolist(), notes), (["Only", "Only"], []))
        frame, notes = read(self.written("openpyxl", "Q1", "Q2", "Notes"))
        self.assertEqual(frame.of.tolist(), ["Q1", "Q1"])
        self.assertEqual(len(notes), 1)
        self.assertIn("sheet: `Q1`, the first of 3; not read: `Q2`, `Notes`", notes[0])

    def test_cells_keep_the_types_that_the_workbook_has(self):
        import datetime

        import openpyxl

        book = openpyxl.Workbook()
        rows = (
            ["zip", "code", "n", "mixed", "flag", "day", "word", "zip"],
            ["01067", "1e5", 1, "7", True, datetime.datetime(2024, 1, 1), "True", "00"],
            ["007", "123", 2.5, 3, None, None, "x", "x"],
            [None, "00123", None, None, False, None, None, None],
        )
        for row in rows:
            book.active.append(row)
        content = io.BytesIO()
        book.save(content)
        engines = ["openpyxl", *(["calamine"] if importlib.util.find_spec("python_calamine") else [])]
        for engine in engines:
            with self.subTest(engine), mock.patch("cellblock_kernel.library.workbooks.reader", return_value=engine):
                frame, notes = read(content.getvalue())
                columns = {name: [None if value != value else value for value in frame[name].astype(object)] for name in frame}
                self.assertEqual(columns["zip"], ["01067", "007", None])
                self.assertEqual(columns["code"], ["1e5", "123", "00123"])
                self.assertEqual((columns["n"], str(frame.n.dtype)), ([1.0, 2.5, None], "float64"))
                self.assertEqual(columns["mixed"], ["7", 3, None])
                self.assertEqual([type(value) for value in columns["flag"]], [bool, type(None), bool])
                self.assertEqual(str(frame.day.dtype)[:10], "datetime64")
                self.assertEqual(columns["word"], ["True", "x", None])
                self.assertEqual(columns["zip.1"], ["00", "x", None])
                note = "`zip`, `code`, `mixed`: cells of the type text look like numbers and stay text; pd.to_numeric converts them"
                self.assertEqual(notes, [note])

    def test_numbers_are_those_that_pandas_reads(self):
        import pandas as pd

        frame = pd.DataFrame({"i": [1, 2], "f": [0.5, None], "b": [True, False], "s": ["x", None], "e": [None, None]})
        frame["d"] = pd.to_datetime(["2024-01-01", None])
        content = io.BytesIO()
        frame.to_excel(content, index=False, engine="openpyxl")
        found, notes = read(content.getvalue())
        pd.testing.assert_frame_equal(found, pd.read_excel(io.BytesIO(content.getvalue()), engine="openpyxl"))
        self.assertEqual(notes, [])

    def test_open_document_spreadsheets_are_read_or_name_the_package_that_is_missing(self):
        content = _open_document("A", "B")
        if all(importlib.util.find_spec(name) is None for name in ("odf", "python_calamine")):
            self.assertIn("needs the package odfpy, which the image lacks", refused(content))
            return
        frame, notes = read(content)
        self.assertEqual(frame.to_dict("list"), {"of": ["A"]})
        self.assertEqual(notes[0], "format: OpenDocument spreadsheet")
        self.assertIn("not read: `B`", notes[1])

    def test_a_package_that_the_image_lacks_is_named(self):
        old = _COMPOUND + "Workbook".encode("utf-16-le") + bytes(40)
        if all(importlib.util.find_spec(name) is None for name in ("xlrd", "python_calamine")):
            self.assertIn("needs the package xlrd, which the image lacks; name `xlrd` in `requirements`", refused(old))
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertIn("damaged or not xlsx at all", refused(old))

    def test_encrypted_workbooks_and_other_files_say_what_they_are(self):
        locked = _COMPOUND + "EncryptedPackage".encode("utf-16-le")
        self.assertIn("input 't' (xlsx): the workbook is encrypted with a password; save it without a password", refused(locked))
        for data, message in (
            (_COMPOUND, "an Office file of the old kind"),
            (b"PK\x03\x04 damaged", "damaged or not xlsx at all"),
            (b"not at all", "damaged or not xlsx at all"),
            (bytes(range(256)), "damaged or not xlsx at all"),
            (b"<?xml version='1.0'?><a/>", "XML, not a workbook"),
            (b"<Workbook xmlns='urn:schemas-microsoft-com:office:spreadsheet'/>", "an XML spreadsheet of 2003"),
            (b"", "the file is empty"),
        ):
            with self.subTest(data[:20]):
                self.assertIn(message, refused(data))

    def test_separated_text_with_the_name_of_a_workbook_is_read(self):
        for data, note in ((b"a\tb\n1\t2,5\n", None), ("a;b\n1;2,5\n".encode("utf-16"), "encoding: UTF-16")):
            frame, notes = read(data)
            self.assertEqual(frame.b.tolist(), [2.5])
            self.assertEqual(notes[0], "format: text with separated fields, not a workbook")
            self.assertTrue(note is None or note in notes)

    @needs("lxml")
    def test_a_web_page_with_the_name_of_a_workbook_is_read_and_its_numbers_stay(self):
        page = "<html><body><table><tr><th>a</th><th>b</th></tr><tr><td>1,5</td><td>2</td></tr></table></body></html>"
        frame, notes = read(page.encode())
        self.assertEqual((frame.a.tolist(), frame.b.tolist()), (["1,5"], [2]))
        self.assertEqual(notes, ["format: table of an HTML page, not a workbook"])
        self.assertIn("No tables found", refused(b"<html><body>nothing</body></html>"))


class ReadExcel(KernelTest):
    configuration = {"prelude": ["documents"]}

    @needs("openpyxl", "pandas")
    def test_text_cells_stay_text_unless_the_caller_chooses_types(self):
        self.completes(
            "import openpyxl\nbook = openpyxl.Workbook(); book.active.append(['zip', 'n']); book.active.append(['007', 1])\n"
            "book.save('x.xlsx')"
        )
        ran = self.completes("[(it.zip[0], int(it.n.sum())) for it in (read_excel('x.xlsx'), read_excel('x.xlsx', None)['Sheet'])]")
        self.assertEqual(ran.values, ["[('007', 1), ('007', 1)]"])
        self.assertIn("note: read_excel: `zip`: cells of the type text look like numbers and stay text", ran.stderr)
        self.assertEqual(self.completes("int(read_excel('x.xlsx', dtype={'zip': int}).zip[0])").values, [7])
