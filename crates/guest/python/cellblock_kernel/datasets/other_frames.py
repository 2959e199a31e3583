"""Frames of polars and tables of pyarrow as plain Arrow tables, and back."""

from __future__ import annotations

from typing import Any

from cellblock_kernel.datasets.form import NotPublishable, arrow, packed_schema, unpacked_schema
from cellblock_kernel.outputs.arrow import plain


def encode_polars(frame: Any, polars: Any) -> tuple[Any, dict[str, Any]]:
    """Returns a polars frame as an Arrow table, and what restores it."""
    special: dict[str, Any] = {}
    columns = []
    for column in frame.get_columns():
        kind = type(column.dtype).__name__
        if kind == "Enum":
            special[column.name] = column.dtype.categories.to_list()
        elif kind in ("Categorical", "Null"):
            special[column.name] = kind
        elif kind in ("Object", "Int128", "UInt128"):
            raise NotPublishable(f"column {column.name!r} has the type {kind}, which cannot be stored; convert it to a plain type")
        columns.append(column.cast(polars.String) if column.name in special else column)
    stored = polars.DataFrame(columns).to_arrow(compat_level=polars.CompatLevel.oldest())
    table = arrow().Table.from_arrays([plain(column) for column in stored.columns], names=stored.column_names)
    form = {"special": special}
    restored = decode_polars(table, form, polars)
    for name, dtype in frame.schema.items():
        if restored.schema[name] != dtype:
            other = restored.schema[name]
            raise NotPublishable(
                f"column {name!r} has the type {dtype}, and would be {other} after loading; convert it to a plain type"
            )
    return table, form


def decode_polars(table: Any, form: dict[str, Any], polars: Any) -> Any:
    """Returns the frame that `encode_polars` was given."""
    frame = polars.from_arrow(table)
    kinds = {"Categorical": polars.Categorical, "Null": polars.Null}
    casts = {name: kinds[how] if isinstance(how, str) else polars.Enum(how) for name, how in form["special"].items()}
    return frame.cast(casts) if casts else frame


def encode_arrow(table: Any) -> tuple[Any, dict[str, Any]]:
    """Returns a table without types that the host does not store, and what restores it."""
    arrays = [plain(column) for column in table.columns]
    stored = arrow().Table.from_arrays(arrays, names=table.column_names)
    if len(set(table.column_names)) < len(table.column_names):
        raise NotPublishable("two columns have the same name; rename one with .rename_columns")
    form = {"schema": packed_schema(table.schema)}
    try:
        restored = decode_arrow(stored, form)
        same = restored.equals(table)
    except arrow().ArrowException:
        same = False
    if not same:
        kinds = [field.name for field, array in zip(table.schema, arrays) if field.type != array.type]
        raise NotPublishable(f"columns {kinds} have types that cannot be stored; cast them to plain types")
    return stored, form


def decode_arrow(table: Any, form: dict[str, Any]) -> Any:
    """Returns the table that `encode_arrow` was given."""
    schema = unpacked_schema(form["schema"])
    nulls = {field.name: arrow().nulls(table.num_rows) for field in schema if arrow().types.is_null(field.type)}
    columns = [nulls[field.name] if field.name in nulls else table[field.name].cast(field.type) for field in schema]
    return arrow().Table.from_arrays(columns, schema=schema)
