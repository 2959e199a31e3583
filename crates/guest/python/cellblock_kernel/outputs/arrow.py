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
_default_repr = object.__repr__
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
        name = getattr(kind, "extension_name", "")
        if name == "arrow.uuid":
            return _uuids(array)
        return _storage(array).cast(pa.bool_()) if name == "arrow.bool8" else plain(_storage(array))
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
    if types.is_nested(kind):
        wanted = _plain_type(kind)
        if wanted == kind:
            return array
        if wanted is None:
            return texts(array.to_pylist())
        if "list_view" in str(kind):
            return pa.array(array.to_pylist(), wanted)  # some versions of pyarrow cast them to broken arrays
        try:
            return array.cast(wanted)
        except pa.ArrowException:
            return texts(array.to_pylist())
    return array


def _plain_type(kind: Any) -> Any:
    """Returns the type with items of plain types; None where these have no cast."""
    pa = library()
    types = pa.types
    if types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        found = [_plain_type(field.type) for field in fields]
        return None if None in found else pa.struct([field.with_type(one) for field, one in zip(fields, found)])
    if types.is_map(kind):
        key, item = _plain_type(kind.key_type), _plain_type(kind.item_type)
        return None if key is None or item is None else pa.map_(key, kind.item_field.with_type(item))
    views = (getattr(types, name, _never)(kind) for name in ("is_list_view", "is_large_list_view"))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or any(views):
        item = _plain_type(kind.value_type)
        if item is None:
            return None
        field = kind.value_field.with_type(item)
        if types.is_fixed_size_list(kind):
            return pa.list_(field, kind.list_size)
        return pa.large_list(field) if types.is_large_list(kind) else pa.list_(field)
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if types.is_null(kind):
        return pa.string()
    if types.is_float16(kind):
        return pa.float32()
    if getattr(types, "is_string_view", _never)(kind):
        return pa.large_string()
    if getattr(types, "is_binary_view", _never)(kind):
        return pa.large_binary()
    unknown = isinstance(kind, pa.BaseExtensionType) or types.is_nested(kind) or types.is_interval(kind)
    return None if unknown or getattr(types, "is_run_end_encoded", _never)(kind) else kind


def _uuids(array: Any) -> Any:
    return library().array([None if value is None else str(value) for value in array.to_pylist()], library().string())


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
        text = str(value)
        return text_of(value) if text == _default_repr(value) else text
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
