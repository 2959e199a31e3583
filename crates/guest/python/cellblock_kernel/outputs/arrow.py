"""Arrow tables as IPC streams that any reader understands: plain types, unique names, batches of limited size."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from typing import Any

from cellblock_kernel.cell.channel import Buffer
from cellblock_kernel.outputs.primitive import text_of

BATCH_ROWS = 65_536

_dumps = json.dumps
_BytesIO = io.BytesIO


def library() -> Any:
    """Returns the pyarrow module, or None if the image lacks it."""
    if "pyarrow" not in sys.modules:
        try:
            import pyarrow  # noqa: F401 - found below
        except ImportError:
            return None
    return sys.modules["pyarrow"]


def unique(names: Sequence[object]) -> list[str]:
    """Returns strings for column names; a repeated one gets a number."""
    taken: set[str] = set()
    result: list[str] = []
    for name in names:
        base = "_".join(str(part) for part in name) if isinstance(name, tuple) else str(name)
        chosen, number = base, 0
        while chosen in taken:
            number += 1
            chosen = f"{base}.{number}"
        taken.add(chosen)
        result.append(chosen)
    return result


def plain(array: Any) -> Any:
    """Converts types that readers or Parquet lack: dictionaries, views, run ends, extensions, unions, half
    floats."""
    pa = library()
    kind = array.type
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return plain(_storage(array))
    if types.is_dictionary(kind):
        return plain(array.cast(kind.value_type))
    if types.is_null(kind):
        return array.cast(pa.string())
    if types.is_float16(kind):
        return array.cast(pa.float32())
    if getattr(types, "is_string_view", _never)(kind):
        return array.cast(pa.large_string())
    if getattr(types, "is_binary_view", _never)(kind):
        return array.cast(pa.large_binary())
    if getattr(types, "is_run_end_encoded", _never)(kind):
        import pyarrow.compute as compute

        return plain(compute.run_end_decode(array))
    if types.is_union(kind) or types.is_interval(kind):
        return texts(array.to_pylist())
    return array


def _never(_kind: object) -> bool:
    return False


def _storage(array: Any) -> Any:
    if hasattr(array, "chunks"):
        pa = library()
        return pa.chunked_array([chunk.storage for chunk in array.chunks], type=array.type.storage_type)
    return array.storage


def texts(values: Sequence[Any]) -> Any:
    """Returns an array of strings: JSON for lists and dicts, text for other values."""
    return library().array([_text(value) for value in values], type=library().large_string())


def _text(value: Any) -> str | None:
    if value is None or value != value:  # NaN and NaT
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, (dict, list, tuple)):
        try:
            return _dumps(value, default=str, sort_keys=isinstance(value, dict))
        except (TypeError, ValueError, RecursionError):
            return text_of(value)
    try:
        return str(value)
    except Exception:
        return text_of(value)


def stream(table: Any) -> Buffer:
    """Writes a table as an uncompressed IPC stream."""
    pa = library()
    # Touching new memory takes most of the time. A buffer that grows does so again and again: find the size first, by a stream that
    # keeps nothing. And take the memory from malloc, which uses large pages.
    measured = pa.MockOutputStream()
    _write(table, measured)
    buffer = pa.allocate_buffer(measured.size(), memory_pool=pa.system_memory_pool())
    _write(table, pa.FixedSizeBufferWriter(buffer))
    return memoryview(buffer)


def _write(table: Any, sink: Any) -> None:
    with library().ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=BATCH_ROWS)
