"""Inputs: every format, every kind of bad data, and what a reset does."""

import json

from tests.driver import Kernel, KernelTest, needs


class Bound(KernelTest):
    def bind(self, kind, data, name="table", path=False):
        if path:
            (self.directory / "data").write_bytes(data)
            return self.kernel.ask("bind", name=name, format=kind, path=str(self.directory / "data"))
        return self.kernel.ask("bind", data, name=name, format=kind)

    def bound(self, kind, data, **options):
        self.assertEqual(self.bind(kind, data, **options).done["outcome"], "completed")

    def refused(self, kind, data, **options):
        ran = self.bind(kind, data, **options)
        self.assertEqual(ran.done["outcome"], "raised", ran)
        return ran.done["error"]["message"]


class Inputs(Bound):
    def test_values_and_bytes_are_bound_as_global_and_in_inputs(self):
        self.bound("value", b'{"a": [1, null]}', name="v")
        self.bound("bytes", b"\x00\xff", name="raw", path=True)
        self.assertEqual(self.completes("v, inputs['v'] is v, inputs['raw'], list(inputs)").values, [
            "({'a': [1, None]}, True, b'\\x00\\xff', ['v', 'raw'])"
        ])  # fmt: skip

    def test_a_reset_binds_them_again(self):
        self.bound("value", b"[1]", name="v")
        self.completes("v.append(2)")
        self.kernel.ask("reset")
        self.assertEqual(self.completes("v, inputs['v']").values, ["([1], [1])"])

    def test_an_unknown_input_is_named_with_those_that_exist(self):
        self.bound("value", b"1", name="v")
        self.assertIn("no input 'w'; bound inputs: v", self.raises("inputs['w']")["message"])

    def test_names_must_be_free_identifiers(self):
        for name in ("a b", "class", "print", "display", "1a", ""):
            with self.subTest(name):
                self.assertIn(f"input {name!r}: the name", self.refused("value", b"1", name=name))

    def test_a_missing_file_is_reported(self):
        ran = self.kernel.ask("bind", name="t", format="csv", path="/nowhere/x.csv")
        self.assertEqual(ran.done["error"]["message"], "input 't' (csv): can not read /nowhere/x.csv: No such file or directory")

    def test_bad_text_is_reported_with_its_position_and_repair(self):
        message = self.refused("csv", "a,b\n1,caféé".encode() + b"\xff\n", name="t")
        self.assertIn("input 't' (csv): not UTF-8: byte 0xff at offset 13; re-encode the file as UTF-8", message)
        late = self.refused("csv", "a\né".encode() * 9 + b"x" * (1 << 20) + b"\xc3(", name="t")
        self.assertIn(f"offset {(1 << 20) + 36};", late)
        self.assertIn("the file is empty", self.refused("csv", b"", name="t"))

    def test_bad_json_is_reported_with_its_line(self):
        self.assertIn("malformed at line 2, column", self.refused("json", b'{"a": 1,\n oops}'))
        self.assertIn("malformed at line 3, column", self.refused("ndjson", b'{"a": 1}\n\n{"a": }\n'))
        self.assertIn("nested too deeply", self.refused("json", b"[" * 100_000))

    def test_an_unknown_format_names_the_known_ones(self):
        self.assertIn("expected one of csv, tsv, parquet", self.refused("toml", b""))


@needs("pandas")
class Tables(Bound):
    def test_text_formats_become_frames(self):
        for kind, data in (
            ("csv", b"\xef\xbb\xbfa,b\n1,x\n2,\n"),
            ("tsv", b"a\tb\n1\tx\n2\t\n"),
            ("json", b'[{"a": 1, "b": "x"}, {"a": 2, "b": null}]'),
            ("json", b'{"a": [1, 2], "b": ["x", null]}'),
            ("json", b'{"columns": ["a", "b"], "data": [[1, "x"], [2, null]]}'),
            ("ndjson", b'{"a": 1, "b": "x"}\n{"a": 2, "b": null}\n'),
        ):
            with self.subTest(kind=kind, data=data):
                self.bound(kind, data, path=True)
                ran = self.completes("list(table.columns), table.a.tolist(), table.b.isna().tolist()")
                self.assertEqual(ran.values, ["(['a', 'b'], [1, 2], [False, True])"])

    def test_json_that_is_not_a_table_is_bound_as_it_is(self):
        self.bound("json", json.dumps({"a": 1, "b": [1, 2]}).encode())
        self.assertEqual(self.completes("table").values, ["{'a': 1, 'b': [1, 2]}"])

    def test_a_malformed_row_is_reported_with_its_line(self):
        self.assertRegex(self.refused("csv", b"a,b\n1,2\n1,2,3\n"), r"malformed: .*line 3.*; check the quoting")

    @needs("pyarrow")
    def test_binary_formats_become_frames(self):
        self.completes(
            "import io, pandas as pd, pyarrow as pa\nframe = pd.DataFrame({'a': [1, 2]})\nframe.to_parquet('p')\n"
            "table = pa.table({'a': [1, 2]})\n"
            "with pa.OSFile('s', 'wb') as f, pa.ipc.new_stream(f, table.schema) as w: w.write(table)\n"
            "with pa.OSFile('f', 'wb') as f, pa.ipc.new_file(f, table.schema) as w: w.write(table)"
        )
        for kind, file in (("parquet", "p"), ("arrow", "s"), ("arrow", "f")):
            with self.subTest(file):
                ran = self.kernel.ask("bind", name="t", format=kind, path=str(self.directory / file))
                self.assertEqual(ran.done["outcome"], "completed", ran.done)
                self.assertEqual(self.completes("t.a.sum()").values, [3])

    @needs("pyarrow", "openpyxl")
    def test_damaged_binaries_are_reported(self):
        for kind in ("parquet", "arrow", "xlsx"):
            with self.subTest(kind):
                message = self.refused(kind, b"not at all", name="t")
                self.assertRegex(message, rf"^input 't' \({kind}\): damaged or not {kind} at all: .*; (write|save) ")
                self.assertIn("the file is empty", self.refused(kind, b"", name="t"))

    @needs("openpyxl")
    def test_workbooks_and_documents_are_read(self):
        self.kernel.send({"type": "configure", "prelude": ["documents"]})
        self.completes("import pandas as pd; pd.DataFrame({'a': [1, 2]}).to_excel('x.xlsx', index=False);")
        self.kernel.ask("bind", name="t", format="xlsx", path=str(self.directory / "x.xlsx"))
        self.assertEqual(self.completes("t.a.sum(), read_excel('x.xlsx').a.sum()").values, ["(np.int64(3), np.int64(3))"])

    @needs("pyarrow")
    def test_dates_of_other_programs_can_be_resampled_and_those_of_pandas_are_kept(self):
        self.completes(
            "import datetime, pandas as pd, pyarrow as pa, pyarrow.parquet as pq\n"
            "table = pa.table({'d': [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)], 'n': [2**53 + 1, None]})\n"
            "pq.write_table(table, 'other'); table.to_pandas().to_parquet('own')\n"
            "with pa.OSFile('f', 'wb') as f, pa.ipc.new_file(f, table.schema) as w: w.write(table)"
        )
        for kind, file, types in (
            ("parquet", "other", "datetime64[ms] Int64"),
            ("arrow", "f", "datetime64[ms] Int64"),
            ("parquet", "own", "object float64"),
        ):
            self.kernel.ask("bind", name="t", format=kind, path=str(self.directory / file))
            self.assertEqual(self.completes("' '.join(map(str, t.dtypes))").values, [types])

    @needs("pyarrow")
    def test_parquet_and_arrow_leave_no_threads_and_the_frame_that_pandas_reads(self):
        self.completes(
            "import pandas as pd, pyarrow as pa\n"
            "frame = pd.DataFrame({'a': range(200_000), 's': 'x', 'c': pd.Categorical(['u', 'v'] * 100_000)})\n"
            "frame = frame.set_index(pd.date_range('2024', periods=200_000, freq='s', tz='UTC', name='t'))\n"
            "frame.attrs['unit'] = 'm'\nframe.to_parquet('p')\ntable = pa.Table.from_pandas(frame)\n"
            "with pa.OSFile('f', 'wb') as f, pa.ipc.new_file(f, table.schema) as w: w.write(table)"
        )
        path = str(self.directory)
        fresh = Kernel(path)
        self.addCleanup(fresh.close)
        for kind, file in (("parquet", "p"), ("arrow", "f")):
            ran = fresh.ask("bind", name=kind, format=kind, path=f"{path}/{file}")
            self.assertEqual(ran.done["outcome"], "completed", ran.done)
        names = "import os\n[open(f'/proc/self/task/{t}/comm').read() for t in os.listdir('/proc/self/task')][1:]"
        self.assertNotIn("arrow", str(fresh.run(names).values).lower())
        self.assertEqual(fresh.run("arrow.attrs = {}\nimport pandas as pd\nparquet.equals(arrow)").values, [True])
        code = "same = pd.read_parquet('p')\nparquet.equals(same), (parquet.dtypes == same.dtypes).all(), parquet.attrs"
        self.assertEqual(fresh.run(code).values, ["(True, np.True_, {'unit': 'm'})"])


class Documents(KernelTest):
    configuration = {"prelude": ["documents", "analysis"]}

    @needs("pypdf", "pptx")
    def test_pdf_and_pptx_text_is_read(self):
        code = """
import pypdf, pptx
writer = pypdf.PdfWriter(); writer.add_blank_page(100, 100); writer.add_blank_page(100, 100); writer.write('a.pdf')
deck = pptx.Presentation(); slide = deck.slides.add_slide(deck.slide_layouts[5]); slide.shapes.title.text = 'Revenue'
deck.save('a.pptx')
read_pdf_text('a.pdf', max_pages=1), read_pptx_text('a.pptx')"""
        self.assertEqual(self.completes(code).values, ["('', [{'index': 0, 'text': 'Revenue'}])"])

    @needs("pypdf")
    def test_the_values_of_forms_and_pages_without_text_are_told(self):
        self.completes("""
import pypdf
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, NumberObject, TextStringObject
writer = pypdf.PdfWriter()
pages = [writer.add_blank_page(100, 100) for _ in range(4)]
def field(kind, name, value, **more):
    made = {'/Type': NameObject('/Annot'), '/Subtype': NameObject('/Widget'), '/FT': NameObject(kind), '/T': TextStringObject(name), '/V': value}
    made.update({'/' + key: it for key, it in more.items()})
    return writer._add_object(DictionaryObject({NameObject(key): it for key, it in made.items()}))
box = field('/Btn', 'agreed', NameObject('/Yes'), AS=NameObject('/Yes'))
off = field('/Btn', 'refused', NameObject('/Off'), AS=NameObject('/Off'))
name = field('/Tx', 'name', TextStringObject('Ada Lovelace'), TU=TextStringObject('Full name'))
city = field('/Ch', 'city', ArrayObject([TextStringObject('Rome'), TextStringObject('Oslo')]))
none = field('/Tx', 'empty', TextStringObject(''))
parent = field('/Tx', 'address', TextStringObject('Main St 1'))
child = writer._add_object(DictionaryObject({NameObject('/Subtype'): NameObject('/Widget'), NameObject('/Parent'): parent, NameObject('/T'): TextStringObject('street')}))
pages[1][NameObject('/Annots')] = ArrayObject([box, off, name, city, none, child])
writer.write('form.pdf')""")
        ran = self.completes("read_pdf_text('form.pdf')")
        self.assertEqual(
            ran.values, ["\n\nagreed: Yes\nFull name: Ada Lovelace\ncity: Rome, Oslo\naddress.street: Main St 1\n\n\n\n"]
        )
        self.assertEqual(ran.stderr, "note: read_pdf_text: no text on pages 1, 3-4\n")
        for pages in (-1, 0):
            message = self.raises(f"read_pdf_text('form.pdf', max_pages={pages})")["message"]
            self.assertIn(f"max_pages must be at least 1, not {pages}", message)

    @needs("pptx")
    def test_the_text_of_groups_tables_and_notes_is_read(self):
        code = """
import io, pptx
deck = pptx.Presentation(); slide = deck.slides.add_slide(deck.slide_layouts[6])
group = slide.shapes.add_group_shape(); inner = group.shapes.add_group_shape()
inner.shapes.add_textbox(0, 0, 9, 9).text_frame.text = 'inside'
table = slide.shapes.add_table(1, 2, 0, 0, 9, 9).table
table.cell(0, 0).text = 'a'; table.cell(0, 1).text = 'b'
slide.notes_slide.notes_text_frame.text = 'said'
deck.save('a.pptx')
content = open('a.pptx', 'rb').read()
one, two, three = read_pptx_text('a.pptx'), read_pptx_text(content), read_pptx_text(open('a.pptx', 'rb'))
assert one == two == three
one"""
        self.assertEqual(self.completes(code).values, ["[{'index': 0, 'text': 'inside\\na\\tb', 'notes': 'said'}]"])

    @needs("pypdf")
    def test_encrypted_and_scanned_pdfs_are_named(self):
        self.completes("""
import io, pypdf
from pypdf.generic import DictionaryObject, NameObject, NumberObject, StreamObject
writer = pypdf.PdfWriter(); writer.add_blank_page(100, 100); writer.encrypt('secret', algorithm='RC4-128'); writer.write('locked.pdf')
writer = pypdf.PdfWriter(); page = writer.add_blank_page(100, 100)
picture = StreamObject(); picture.set_data(b'\\0')
picture.update({NameObject('/Type'): NameObject('/XObject'), NameObject('/Subtype'): NameObject('/Image'), NameObject('/Width'): NumberObject(1)})
page[NameObject('/Resources')] = DictionaryObject({NameObject('/XObject'): DictionaryObject({NameObject('/I'): writer._add_object(picture)})})
writer.write('scan.pdf')""")
        self.assertIn("needs a password", self.raises("read_pdf_text('locked.pdf')")["message"])
        self.assertIn("probably a scan", self.raises("read_pdf_text(open('scan.pdf', 'rb').read())")["message"])

    @needs("openpyxl", "pandas")
    def test_sheets_are_chosen_by_position_and_formulas_without_values_named(self):
        self.completes("""
import openpyxl
book = openpyxl.Workbook(); book.active.append(['a']); book.active.append([1])
second = book.create_sheet('S2'); second.append(['b', 'c']); second.append([2, '=A2*2'])
book.save('x.xlsx')""")
        ran = self.completes(
            "data = open('x.xlsx', 'rb').read()\n[list(read_excel(it, 'S2').b) for it in ('x.xlsx', data, open('x.xlsx', 'rb'))]"
        )
        self.assertEqual(ran.values, ["[[2], [2], [2]]"])
        self.assertIn("formulas without a stored value are read as empty: S2!B2", ran.stderr)
        self.assertEqual(self.completes("list(read_excel('x.xlsx').a)").stderr, "")
        locked = "b'\\xd0\\xcf\\x11\\xe0' + bytes(600) + 'EncryptedPackage'.encode('utf-16-le')"
        self.assertIn("encrypted with a password", self.raises(f"read_excel({locked})")["message"])
        self.assertIn("not a workbook", self.raises("read_excel(b'a,b')")["message"])

    def test_a_missing_reader_says_what_to_require(self):
        code = "import sys\nsys.modules['pypdf'] = None\nread_pdf_text('x.pdf')"
        self.assertIn("read_pdf_text needs the package pypdf: name it in the cell's `requirements`", self.raises(code)["message"])

    def test_the_analysis_prelude_binds_dates(self):
        self.assertEqual(
            self.completes("timezone.utc == datetime.now(timezone.utc).tzinfo, timedelta(1).days").values, ["(True, 1)"]
        )
