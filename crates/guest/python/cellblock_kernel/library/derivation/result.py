"""`set_result()`: the answer of a cell."""

import json
from typing import Any

from cellblock_kernel.library import findings
from cellblock_kernel.library.derivation import emission
from cellblock_kernel.library.derivation.plain import Plain
from cellblock_kernel.outputs.output import Output
from cellblock_kernel.outputs.primitive import qualified


def set_result(value: Any) -> None:
    """Makes a value the cell's result; the last call in a cell counts.

    It may contain JSON values, values of numpy, pandas, Polars and pyarrow, dates, `Decimal`, sets and
    dataclasses. NaN, the infinities and missing values become null, which is reported as a finding. A value
    that JSON cannot represent exactly (an integer beyond 64 bits, two keys with the same text), any other type,
    and more than 4 MiB as JSON raise an error that names the location.
    """
    plain = Plain("result")
    answer = plain.value(value)
    limit = emission.limits().result_bytes
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > limit:
        raise ValueError(
            f"set_result: the result has {len(encoded)} bytes as JSON, the limit is {limit}: "
            "answer with aggregates or the rows that matter, and write the rest to a file in /tmp/output"
        )
    if plain.absent:
        findings.add(
            "missing_values_to_null",
            f"{plain.absent} missing or non-finite values of the result are null, the first at {plain.first_absent}",
            details={"count": plain.absent, "first": plain.first_absent},
        )
    emission.emit(Output({"type": "result", "python_type": qualified(value)}, [encoded]))
