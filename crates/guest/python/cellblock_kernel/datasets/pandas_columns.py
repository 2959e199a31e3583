"""Columns and index levels of pandas as plain Arrow arrays, and back."""

from __future__ import annotations

from typing import Any

from cellblock_kernel.datasets import objects
from cellblock_kernel.datasets.form import NotPublishable, arrow, combined, embedded, unembedded

_REPAIRS = {
    "IntervalDtype": "convert it with .astype(str), or to two columns",
    "SparseDtype": "convert it with .sparse.to_dense()",
}


def encode(values: Any, what: str, pandas: Any) -> tuple[Any, dict[str, Any]]:
    """Returns a series or an index as an Arrow array, and what restores it."""
    dtype = values.dtype
    kind = type(dtype).__name__
    if dtype.kind == "O" and kind.startswith("ObjectDType"):
        array, form = objects.encode(values.to_numpy(), what, pandas)
        return array, form
    if kind == "CategoricalDtype":
        array, form = _categories(values, what, pandas)
    elif kind == "PeriodDtype":
        array, form = arrow().array(_starts(values)), {"period": str(dtype).removeprefix("period[").removesuffix("]")}
    elif kind in _REPAIRS or dtype.kind == "c":
        repair = _REPAIRS.get(kind, "convert it to two columns with .real and .imag")
        raise NotPublishable(f"{what} has the type {dtype}, which cannot be stored; {repair}")
    elif dtype.kind == "f" and getattr(dtype, "itemsize", 8) == 2 and kind != "ArrowDtype":
        array, form = arrow().array(values.to_numpy().astype("float32")), {"dtype": "float16"}
    else:
        form = {"dtype": _name(dtype)}
        try:
            array = combined(arrow().array(_plain(values)))
        except (arrow().ArrowException, ValueError, TypeError) as error:
            raise NotPublishable(f"{what} has the type {dtype}, which cannot be stored: {error}") from None
    _check(values, array, form, what, pandas)
    return array, form


def _plain(values: Any) -> Any:
    """Returns numbers without pandas around them, so that NaN is not taken for a missing value."""
    return values.to_numpy() if type(values.dtype).__module__.startswith("numpy") and values.dtype.kind in "biuf" else values


def _name(dtype: Any) -> str:
    if type(dtype).__name__ == "StringDtype" and str(dtype) != "str":
        return f"string[{dtype.storage}]"
    return str(dtype)


def _starts(values: Any) -> Any:
    periods = values.dt if hasattr(values, "dt") else values
    return periods.to_timestamp(how="start")


def _categories(values: Any, what: str, pandas: Any) -> tuple[Any, dict[str, Any]]:
    pa = arrow()
    categorical = values.array if hasattr(values, "array") else values
    codes = pa.array(categorical.codes, mask=categorical.codes == -1)
    known, form = encode(pandas.Series(categorical.categories), f"the categories of {what}", pandas)
    array = pa.DictionaryArray.from_arrays(codes, known).dictionary_decode()
    return array, {
        "categories": embedded(known, f"the categories of {what}"),
        "ordered": bool(categorical.ordered),
        "form": form,
    }


def _check(values: Any, array: Any, form: dict[str, Any], what: str, pandas: Any) -> None:
    """Restores what may differ and compares it; of plain numbers only the type."""
    plain = "dtype" in form and values.dtype.kind in "biuf"
    part = values[:0] if plain else values
    try:
        restored = pandas.Series(decode(array[:0] if plain else array, form, pandas))
        same = restored.dtype == values.dtype and restored.equals(pandas.Series(part).reset_index(drop=True))
    except Exception as error:
        raise NotPublishable(f"{what} has the type {values.dtype}, which cannot be restored: {error}") from None
    if not same:
        raise NotPublishable(
            f"{what} has the type {values.dtype}, and would not be the same after loading ({restored.dtype}); "
            "convert it to a plain type, such as UTC times or strings"
        )


def decode(array: Any, form: dict[str, Any], pandas: Any) -> Any:
    """Returns the values that `encode` was given."""
    if "objects" in form:
        return pandas.Series(objects.decode(array, form, pandas), dtype=object)
    if "categories" in form:
        return _categorical(array, form, pandas)
    if "period" in form:
        return pandas.Series(array.to_pandas(use_threads=False)).dt.to_period(form["period"])
    dtype = pandas.api.types.pandas_dtype(form["dtype"])
    if hasattr(dtype, "__from_arrow__") and dtype.kind not in "mM":
        return pandas.Series(dtype.__from_arrow__(array), dtype=dtype)
    if dtype.kind in "biuf":
        return pandas.Series(array.to_numpy(zero_copy_only=False).astype(dtype, copy=False))
    values = array.to_pandas(use_threads=False)
    return values if values.dtype == dtype else values.astype(dtype)


def _categorical(array: Any, form: dict[str, Any], pandas: Any) -> Any:
    import pyarrow.compute as compute

    known = unembedded(form["categories"])
    categories = pandas.Index(decode(known, form["form"], pandas))
    codes = compute.index_in(array, value_set=known)
    # A null finds nothing, so its code is null as well.
    codes = compute.fill_null(codes, -1).to_numpy(zero_copy_only=False)
    return pandas.Series(pandas.Categorical.from_codes(codes, categories=categories, ordered=form["ordered"]))
