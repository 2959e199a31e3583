"""Connectors in cells: signatures, arguments, answers and errors."""

import json

from tests.driver import KernelTest
from tests.needs import needs

FORECAST = {
    "name": "get-forecast",
    "function": "get_forecast",
    "description": "Returns a forecast for rain and wind.\nIn degrees.",
    "parameters": {
        "type": "object",
        "properties": {
            "days": {"type": "integer", "default": 3},
            "unit-of": {"enum": ["C", "F"], "description": "Unit of temperatures."},
            "city": {"type": "string"},
            "class": {"type": "string"},
        },
        "required": ["city"],
    },
}
BOOK = {"name": "book", "function": "book", "parameters": {"type": "object"}, "effect": "writes"}
BUNDLES = [
    {"name": "weather", "description": "Forecasts.", "functions": [FORECAST, BOOK]},
    {"name": "gone", "functions": [], "unavailable": "it did not answer"},
]


class Connectors(KernelTest):
    configuration = {"connectors": BUNDLES}

    def setUp(self):
        super().setUp()
        self.received = []
        self.kernel.calls["fetch"] = self.fetch

    def fetch(self, params, blobs):
        self.received.append(params)
        return {"value": {"cached": False}}, json.dumps({"got": params["arguments"]}).encode()

    def failing(self, code, message, **details):
        error = {"code": code, "message": message, "details": details}
        self.kernel.calls["fetch"] = lambda params, blobs: ({"error": error},)

    def test_arguments_have_the_schemas_names(self):
        code = (
            "import datetime\nweather.get_forecast('Kyiv', days=datetime.date(2024, 1, 2), unit_of='C', class_='a') == "
            "weather['get-forecast'](**{'city': 'Kyiv', 'days': '2024-01-02', 'unit-of': 'C', 'class': 'a'})"
        )
        self.assertEqual(self.completes(code).values, [True])
        for call in self.received:
            self.assertEqual((call["connector"], call["function"]), ("weather", "get_forecast"))
            expected = {"city": "Kyiv", "days": "2024-01-02", "unit-of": "C", "class": "a"}
            self.assertEqual(call["arguments"], expected)

    def test_each_call_has_an_answer_of_its_own(self):
        code = "a = weather.book()\na['got'] = 1\nb = await weather.book.aio()\nb"
        self.assertEqual(self.completes(code).values, ["{'got': {}}"])

    def test_an_envelope_has_the_answer_and_its_provenance(self):
        told = {
            "cached": True,
            "fetched_at": "2026-01-31T12:00:00.000Z",
            "form": "json",
            "arguments": {"city": "Kyiv", "days": 3},
            "row_count": 2,
            "columns": ["a"],
            "artifact": {"sha256": "ab" * 32},
        }
        self.kernel.calls["fetch"] = lambda params, blobs: ({"value": told}, b'[{"a": 1}, {"a": 2}]')
        code = "f = weather.get_forecast.fetch('Kyiv')\nrepr((f.data, f.columns, f.row_count, f.provenance, f.artifact[:2], f.cached, f.note, f))"
        provenance = {
            "connector": "weather",
            "function": "get_forecast",
            "arguments": told["arguments"],
            "fetched_at": told["fetched_at"],
        }
        shown = self.completes(code).values[0]
        self.assertEqual(
            shown,
            f"([{{'a': 1}}, {{'a': 2}}], ['a'], 2, {provenance}, 'ab', True, None, <fetched from weather.get_forecast, 2 rows, cached>)",
        )
        self.kernel.calls["fetch"] = lambda params, blobs: ({"value": {"cached": False}}, b'{"a": {"b": 1}}')
        error = self.raises("weather.get_forecast.fetch('Kyiv').df")
        self.assertEqual(error["traceback"], "cellblock.ParseError: the answer is a dict, not a table; use `.data`\n")
        self.failing("rate_limit", "slower", retry_after=2)
        self.assertEqual(self.raises("weather.get_forecast.fetch('Kyiv')")["exception"], "RateLimitError")

    @needs("pandas")
    def test_an_envelope_converts_records_to_a_data_frame(self):
        for answer in (b'[{"a": 1}, {"a": 2}]', b'{"rows": [{"a": 1}, {"a": 2}], "total": 2}'):
            self.kernel.calls["fetch"] = lambda params, blobs, answer=answer: ({"value": {"form": "json"}}, answer)
            self.assertEqual(self.completes("weather.book.fetch().df['a'].sum().item()").values, [3])

    @needs("pandas", "pyarrow")
    def test_a_table_is_a_data_frame_that_code_can_change(self):
        import pyarrow

        table = pyarrow.table({"a": [1, 2], "b": ["x", None]})
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        stream = sink.getvalue().to_pybytes()
        self.kernel.calls["fetch"] = lambda params, blobs: ({"value": {"form": "arrow"}}, stream)
        code = "df = weather.book()\ndf.loc[0, 'a'] = 5\nagain = weather.book.fetch()\n(df['a'].tolist(), again.df['a'].tolist(), list(again.df.columns))"
        self.assertEqual(self.completes(code).values, ["([5, 2], [1, 2], ['a', 'b'])"])

    @needs("pandas", "pyarrow")
    def test_dates_of_a_table_can_be_resampled(self):
        import datetime
        from decimal import Decimal

        import pyarrow

        day = datetime.datetime(2026, 1, 31, 23, 30)
        columns = {
            "date": pyarrow.array([datetime.date(2026, 1, 31), datetime.date(2026, 2, 1), None], pyarrow.date32()),
            "at": pyarrow.array([day, None, None], pyarrow.timestamp("us", "UTC")),
            "local": pyarrow.array([day, None, None], pyarrow.timestamp("us")),
            "time": pyarrow.array([datetime.time(9), None, None], pyarrow.time64("us")),
            "price": pyarrow.array([Decimal("1.10"), None, None], pyarrow.decimal128(9, 2)),
            "id": pyarrow.array([2**53 + 1, None, 3], pyarrow.int64()),
            "value": pyarrow.array([1, 3, None], pyarrow.int64()),
        }
        table = pyarrow.table(columns)
        # The last is how pandas writes Python's dates.
        for given in (table, table.replace_schema_metadata(pyarrow.Schema.from_pandas(table.to_pandas()).metadata)):
            sink = pyarrow.BufferOutputStream()
            with pyarrow.ipc.new_stream(sink, given.schema) as writer:
                writer.write_table(given)
            stream = sink.getvalue().to_pybytes()
            self.kernel.calls["fetch"] = lambda params, blobs, stream=stream: ({"value": {"form": "arrow"}}, stream)
            code = "df = weather.book()\nstr(df.resample('ME', on='date').value.sum().to_list())"
            self.assertEqual(self.completes(code).values, ["[1.0, 3.0]"])
            types = "datetime64[ms], datetime64[us, UTC], datetime64[us], object, object, Int64, float64"
            self.assertEqual(self.completes("', '.join(map(str, df.dtypes))").values, [types])
            code = "repr((df['time'][0], df.price[0], int(df.id[0]), df['at'][0].isoformat()))"
            self.assertEqual(
                self.completes(code).values,
                ["(datetime.time(9, 0), Decimal('1.10'), 9007199254740993, '2026-01-31T23:30:00+00:00')"],
            )

    def test_a_map_calls_side_by_side_and_keeps_the_order(self):
        code = "[it['got']['city'] for it in weather.get_forecast.map({'city': str(n)} for n in range(50))] == [str(n) for n in range(50)]"
        self.assertEqual(self.completes(code).values, [True])
        self.assertEqual([call["arguments"]["city"] for call in self.received], [str(n) for n in range(50)])
        self.assertEqual(self.completes("weather.get_forecast.map([])").values, ["[]"])
        self.received.clear()
        error = self.raises("weather.get_forecast.map([{'city': 'a'}, 'b'])")
        self.assertEqual(error["message"], "item 1 is a str; pass a list of dicts of arguments")
        self.assertEqual(self.received, [])

    def test_a_map_raises_the_first_error_and_the_kernel_goes_on(self):
        def fetch(params, blobs):
            city = params["arguments"]["city"]
            if city in ("3", "7"):
                return ({"error": {"code": "rate_limit", "message": city, "details": {"retry_after": 1.5}}},)
            return {"value": {"cached": False}}, json.dumps(city).encode()

        self.kernel.calls["fetch"] = fetch
        code = (
            "try:\n    weather.get_forecast.map([{'city': str(n)} for n in range(40)])\n"
            "except cellblock.RateLimitError as error:\n    got = (str(error), error.retry_after)\ngot"
        )
        self.assertEqual(self.completes(code).values, ["('3', 1.5)"])
        self.assertEqual(self.completes("weather.get_forecast('after')").values, ["after"])

    def test_the_signature_and_the_documentation_are_those_of_the_schema(self):
        shown = self.completes("import inspect\nstr(inspect.signature(weather.get_forecast))").values[0]
        self.assertEqual(shown, "(city: str, days: int = 3, unit_of=…, class_: str = …)")
        text = self.completes("help(weather.get_forecast)").stdout
        self.assertIn("Returns a forecast", text)
        self.assertIn("unit_of (one of 'C', 'F'): Unit of temperatures.", text)
        text = self.completes("help(weather)").stdout
        self.assertIn("Forecasts.", text)
        self.assertIn("weather.get_forecast(city: str, days: int = 3", text)
        self.assertEqual(self.completes("dir(weather)").values, ["['book', 'get_forecast']"])

    def test_functions_are_found_by_words(self):
        found = self.completes("[f.__qualname__ for f in connectors.search('RAIN book')]").values
        self.assertEqual(found, ["['weather.book', 'weather.get_forecast']"])
        self.assertEqual(self.completes("connectors.search('snow')").values, ["[]"])
        self.assertEqual(self.completes("list(connectors)").values, ["['weather', 'gone']"])
        self.assertIn("weather: get_forecast, book", self.completes("repr(connectors)").values[0])

    def test_arguments_that_are_not_json_are_rejected(self):
        for argument, message in (
            ("{1, 2}", "`city` is a set, which is not JSON"),
            ("[1, b'']", "`city[1]` is a bytes, which is not JSON"),
            ("{1: 2}", "`city` has the key 1; keys in JSON are strings"),
            ("float('nan')", "`city` is nan, which JSON does not have"),
            ("'x' * (1 << 20)", "the limit is 1048576"),
        ):
            error = self.raises(f"weather.get_forecast({argument})")
            self.assertEqual(error["exception"], "InvalidParameterError")
            self.assertIn(message, error["message"])
        loop = self.raises("a = []\na.append(a)\nweather.get_forecast(a)")
        self.assertIn("contains itself", loop["message"])
        self.assertIn("2 positional arguments", self.raises("weather.book(1, 2)")["message"])
        self.assertIn("given twice", self.raises("weather.get_forecast('a', city='b')")["message"])
        self.assertEqual(self.received, [])

    def test_errors_are_typed_and_one_line(self):
        for code, kind in (
            ("unauthorized", "UnauthorizedError"),
            ("payment_required", "PaymentRequiredError"),
            ("rate_limit", "RateLimitError"),
            ("provider", "ProviderError"),
            ("empty_data", "EmptyDataError"),
            ("parse", "ParseError"),
            ("invalid_parameter", "InvalidParameterError"),
            ("timeout", "TimeoutError"),
            ("too_many_calls", "ConnectorError"),
        ):
            self.failing(code, "the words of the host")
            error = self.raises("def f():\n    weather.book()\nf()")
            self.assertEqual(error["traceback"], f"cellblock.{kind}: the words of the host\n")
            code = f"import cellblock\ntry:\n    weather.book()\nexcept cellblock.{kind} as error:\n    got = str(error)\ngot"
            self.assertEqual(self.completes(code).values, ["the words of the host"])
        self.failing("rate_limit", "later", retry_after=2.5)
        code = "try:\n    await weather.book.aio()\nexcept cellblock.RateLimitError as error:\n    got = error.retry_after\ngot"
        self.assertEqual(self.completes(code).values, [2.5])
        self.failing("timeout", "late")
        self.completes("try:\n    weather.book()\nexcept TimeoutError:\n    pass")

    def test_an_unknown_function_is_an_attribute_error_that_lists_the_others(self):
        error = self.raises("weather.get_forcast")
        self.assertEqual(error["exception"], "AttributeError")
        self.assertIn("it has get_forecast, book", error["message"])

    def test_functions_that_are_not_known_yet_are_asked_of_the_host(self):
        self.completes("gone.anything(a=1)")
        self.assertEqual(self.received[0], {"connector": "gone", "function": "anything", "arguments": {"a": 1}})
        self.assertIn("it did not answer", self.completes("gone.__doc__").values[0])

    def test_a_forked_child_cannot_call(self):
        code = (
            "import os\nread, write = os.pipe()\nif os.fork() == 0:\n    try:\n        weather.book()\n    except RuntimeError as error:\n"
            "        os.write(write, str(error).encode())\n    os._exit(0)\nos.wait()\nos.read(read, 1000).decode()"
        )
        self.assertIn("forked", self.completes(code).values[0])

    def test_names_come_back_after_a_reset(self):
        self.completes("weather = None")
        self.kernel.ask("reset")
        self.completes("weather.book()")


class Without(KernelTest):
    def test_there_are_no_names_without_connectors(self):
        for name in ("connectors", "cellblock"):
            self.assertEqual(self.raises(name)["exception"], "NameError")
        self.assertEqual(self.raises("cellblock")["exception"], "NameError")
