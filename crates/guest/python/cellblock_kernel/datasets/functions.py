"""What cells call: `publish_dataset`, `load_dataset`, `read_dataset` and `list_datasets`."""

from __future__ import annotations

import sys
from typing import Any

from cellblock_kernel.library import broker
from cellblock_kernel.library.broker import BrokerError

# A frame of the protocol has at most 1 GiB, the header included.
_TABLE_BYTES = (1 << 30) - (8 << 20)


class LoadDatasetError(KeyError):
    """A dataset cannot be loaded."""

    def __str__(self) -> str:
        # That of a KeyError puts quotes and escapes around the message.
        return str(self.args[0]) if self.args else ""


class PublishDatasetError(RuntimeError):
    """A dataset was not published."""


for _error in (LoadDatasetError, PublishDatasetError):
    # Where cells find it.
    _error.__module__ = "cellblock"


def load_dataset(*slugs: Any) -> Any:
    """Returns the published dataset with this slug as a data frame, equal to the one that was published.

    `load_dataset("gdp")` loads the current version, `load_dataset("gdp@3f2a9c")` the one whose sha256 begins with these digits.
    A dataset of another session has to be looked at first, with `read_dataset` in an earlier cell.
    """
    slug = _slug("load_dataset", slugs)
    _value, blobs = _ask("dataset.load", slug)
    from cellblock_kernel.datasets import frames

    try:
        return frames.decode(blobs[0])
    except ImportError as error:
        raise LoadDatasetError(f"cannot load {slug!r}: {error}") from None
    except (KeyError, ValueError, TypeError) as error:
        raise LoadDatasetError(f"the dataset {slug!r} cannot be restored with the libraries of this image: {error}") from error


def read_dataset(*slugs: Any) -> dict[str, Any]:
    """Returns what is known of a dataset: title, description, notes, columns, versions and origin. Later cells may load it."""
    value, _ = _ask("dataset.read", _slug("read_dataset", slugs))
    return dict(value)


def list_datasets() -> list[dict[str, Any]]:
    """Returns the datasets of the project, one dict each; `seen` says whether this session may load it."""
    value, _ = _ask("dataset.list", None)
    return list(value)


def publish_dataset(
    df: Any,
    slug: str,
    *,
    title: str | None = None,
    description: str | None = None,
    tags: list[str] | str | None = None,
    notes: list[str] | str | None = None,
) -> dict[str, Any]:
    """Publishes a whole data frame under a slug, as a new version if there is such a dataset, and returns what is known of it.

    Sessions of the same project can load an equal frame. A frame that would not be the same after loading is rejected.
    """
    _check_slug("publish_dataset", slug)
    for name, text in (("title", title), ("description", description)):
        if text is not None and not isinstance(text, str):
            raise TypeError(f"publish_dataset: {name} must be a string, not {type(text).__name__}")
    for name, texts in (("tags", tags), ("notes", notes)):
        plain = isinstance(texts, (list, tuple)) and all(isinstance(text, str) for text in texts)
        if texts is not None and not isinstance(texts, str) and not plain:
            raise TypeError(f"publish_dataset: {name} must be a string or a list of strings")
    from cellblock_kernel.datasets import frames
    from cellblock_kernel.outputs import arrow

    encoded = frames.encode(df)
    table = arrow.stream(encoded.table)
    size = memoryview(table).nbytes
    if size > _TABLE_BYTES:
        raise PublishDatasetError(f"the frame has {size} bytes, the limit is {_TABLE_BYTES}; publish fewer rows or columns")
    about = {
        "slug": slug,
        "title": title,
        "description": description,
        "tags": tags,
        "notes": notes,
        "variable": _variable(df),
        **encoded.about,
    }
    try:
        value, _ = broker.call("dataset.publish", about, [table])
    except BrokerError as error:
        if error.code == "invalid_argument":
            raise ValueError(f"publish_dataset: {error}") from None
        raise PublishDatasetError(str(error)) from None
    return dict(value)


def _variable(df: Any) -> str | None:
    """Returns the name of the variable that holds a frame."""
    names = vars(sys.modules["__main__"])
    return next((name for name, value in names.items() if value is df and not name.startswith("_")), None)


def _slug(function: str, slugs: tuple[Any, ...]) -> str:
    if len(slugs) != 1:
        raise TypeError(f"{function} takes exactly one argument, the slug of a dataset; {len(slugs)} were given")
    return _check_slug(function, slugs[0])


def _check_slug(function: str, slug: Any) -> str:
    if not isinstance(slug, str):
        raise TypeError(f"{function} expects the slug of a dataset as a string, not {type(slug).__name__}")
    if not slug.strip():
        raise ValueError(f"{function} expects the slug of a dataset, such as 'inflation_monthly', not an empty string")
    return slug


def _ask(method: str, slug: str | None) -> tuple[Any, list[bytes]]:
    try:
        return broker.call(method, {} if slug is None else {"slug": slug})
    except BrokerError as error:
        raise LoadDatasetError(str(error)) from None


def names() -> dict[str, Any]:
    """Returns the names that cells have for datasets."""
    return {function.__name__: function for function in (load_dataset, read_dataset, list_datasets, publish_dataset)}
