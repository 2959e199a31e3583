"""The content of `IPython.display`: objects that show themselves with the session's own `display`."""

from __future__ import annotations

import json
import os
from typing import Any

_KINDS = ((b"\x89PNG", "image/png"), (b"\xff\xd8", "image/jpeg"), (b"GIF8", "image/gif"), (b"RIFF", "image/webp"))

_screen: Any = print


def use(screen: Any) -> None:
    """Sets the session's `display` as the function that shows everything here."""
    global _screen
    _screen = screen


def display(*values: Any, **options: Any) -> Any:
    """Shows values with the `display` that every cell has."""
    return _screen(*values, **options)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    from cellblock_kernel.notebook import media

    raise ImportError(f"`IPython.display.{name}` is not available in the sandbox; available: {', '.join((*NAMES, *media.NAMES))}")


class DisplayObject:
    """Something with an HTML form for browsers and a text form for other readers."""

    mime = "text/plain"

    def __init__(self, data: Any = None, url: str | None = None, filename: str | None = None, metadata: Any = None) -> None:
        if url is not None or (isinstance(data, str) and data.startswith(("http://", "https://"))):
            raise OSError(f"{type(self).__name__}: the sandbox has no network to load {url or data} from; give the content itself")
        if data is None and filename is not None:
            data = self._read(filename)
        self.data, self.metadata = data, metadata or {}

    def _read(self, filename: str) -> Any:
        with open(filename, encoding="utf-8") as file:
            return file.read()

    def text(self) -> str:
        """Returns the text form, for readers without a browser."""
        return str(self.data)

    def __repr__(self) -> str:
        return f"<IPython.display.{type(self).__name__} object>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": self.text(), self.mime: self.data}


class HTML(DisplayObject):
    """HTML. Its text form is what a browser would show: a line per block, and tabs between the cells of a
    table."""

    mime = "text/html"

    def text(self) -> str:
        """The text of the document."""
        # Only here, because few cells need it and it takes long to import.
        from cellblock_kernel.notebook import html_text

        return html_text.of(str(self.data)) or repr(self)

    def _repr_html_(self) -> str:
        return str(self.data)

    __html__ = _repr_html_


class Markdown(DisplayObject):
    """Markdown."""

    mime = "text/markdown"


class Latex(DisplayObject):
    """LaTeX."""

    mime = "text/latex"


class Math(Latex):
    """A formula."""

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(f"$\\displaystyle {str(data).strip('$')}$", **options)


class SVG(DisplayObject):
    """A drawing."""

    mime = "image/svg+xml"

    def __init__(self, data: Any = None, url: str | None = None, filename: str | None = None, metadata: Any = None) -> None:
        if isinstance(data, str) and not data.lstrip().startswith("<"):
            data, filename = None, data
        super().__init__(data, url, filename, metadata)

    def text(self) -> str:
        """Returns a placeholder."""
        return f"<svg of {len(self.data)} characters>"


class JSON(DisplayObject):
    """Plain data."""

    mime = "application/json"

    def __init__(self, data: Any = None, url: str | None = None, filename: str | None = None, **_options: Any) -> None:
        super().__init__(data, url, filename)
        if isinstance(self.data, (str, bytes)):
            self.data = json.loads(self.data)

    def text(self) -> str:
        """Returns the data, indented."""
        return json.dumps(self.data, indent=2, default=str, ensure_ascii=False)


class Pretty(DisplayObject):
    """Text."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {}

    def __repr__(self) -> str:
        return self.text()


class Code(Pretty):
    """Source code."""

    def __init__(self, data: Any = None, url: str | None = None, filename: str | None = None, language: Any = None) -> None:
        super().__init__(data, url, filename)


class Javascript(DisplayObject):
    """A script, which is not run here."""

    mime = "application/javascript"

    def __init__(self, data: Any = None, url: str | None = None, filename: str | None = None, **_options: Any) -> None:
        super().__init__(data, url, filename)

    def text(self) -> str:
        """Returns a note that it is not run."""
        return "<JavaScript, which is not run in the sandbox>"


class Image(DisplayObject):
    """A picture, from its bytes or a file."""

    def __init__(
        self, data: Any = None, url: str | None = None, filename: Any = None, format: str | None = None, **_options: Any
    ) -> None:
        if data is not None and not isinstance(data, (bytes, bytearray)) and not str(data).startswith(("http://", "https://")):
            data, filename = None, data
        super().__init__(data, url, None if filename is None else os.fspath(filename))
        if not isinstance(self.data, (bytes, bytearray)):
            raise TypeError("Image: give the bytes of a picture, or the name of a file")
        known = next((kind for start, kind in _KINDS if bytes(self.data[:8]).startswith(start)), None)
        svg = known is None and b"<svg" in self.data[:1000]
        self.mime = known or ("image/svg+xml" if svg else f"image/{(format or 'png').replace('jpg', 'jpeg')}")

    def _read(self, filename: str) -> Any:
        with open(filename, "rb") as file:
            return file.read()

    def text(self) -> str:
        """Returns a placeholder."""
        return f"<{self.mime} of {len(self.data)} bytes>"


class FileLink(Pretty):
    """The path of a file, which is among the cell's collected files."""

    def __init__(self, path: Any, **_options: Any) -> None:
        super().__init__(os.fspath(path))


class DisplayHandle:
    """Shows values under one id, and replaces what it shows."""

    def __init__(self, display_id: str | None = None) -> None:
        self.display_id = display_id or os.urandom(16).hex()

    def __repr__(self) -> str:
        return f"<DisplayHandle display_id={self.display_id}>"

    def display(self, value: Any, **options: Any) -> None:
        """Shows a value, which later updates replace."""
        display(value, display_id=self.display_id, **options)

    def update(self, value: Any, **options: Any) -> None:
        """Replaces what was shown under the id."""
        update_display(value, display_id=self.display_id, **options)


class Bundle:
    """A dict of MIME types, as passed to `display(bundle, raw=True)`."""

    def __init__(self, bundle: dict[str, Any]) -> None:
        self._bundle = bundle

    def __repr__(self) -> str:
        return str(self._bundle.get("text/plain", f"<{', '.join(self._bundle)}>"))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self._bundle


def update_display(value: Any, *, display_id: str, **options: Any) -> None:
    """Replaces what was shown under an id."""
    display(value, display_id=display_id, update=True, **options)


def clear_output(wait: bool = False) -> None:
    """Removes what the cell has shown and printed: now, or when it shows or prints something again."""
    clear = getattr(_screen, "clear", None)
    if clear is not None:
        clear(wait)


def publish_display_data(
    data: dict[str, Any], metadata: Any = None, source: Any = None, *, transient: Any = None, update: bool = False, **_options: Any
) -> None:
    """Shows a dict of MIME types."""
    display(Bundle(data), transient=transient, update=update)


def display_html(*values: Any, raw: bool = False, **_options: Any) -> None:
    """Shows HTML."""
    display(*(HTML(value) if raw else value for value in values))


def display_markdown(*values: Any, raw: bool = False, **_options: Any) -> None:
    """Shows Markdown."""
    display(*(Markdown(value) if raw else value for value in values))


def set_matplotlib_formats(*_formats: str, **_options: Any) -> None:
    """Does nothing: figures are PNG."""


NAMES = (
    "Code", "DisplayHandle", "DisplayObject", "FileLink", "HTML", "Image", "JSON", "Javascript", "Latex", "Markdown", "Math",
    "Pretty", "SVG", "clear_output", "display", "display_html", "display_markdown", "publish_display_data",
    "set_matplotlib_formats", "update_display",
)  # fmt: skip
