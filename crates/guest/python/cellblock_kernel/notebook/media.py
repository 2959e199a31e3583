"""Sound, films, pages and folders of `IPython.display`: elements for browsers, and a text that names them for other readers."""

from __future__ import annotations

import io
import os
import sys
from base64 import b64encode
from html import escape
from typing import Any

from cellblock_kernel.notebook.display import JSON, DisplayObject, Pretty

_TYPES = {
    "mp3": "audio/mpeg", "wav": "audio/wav", "ogg": "audio/ogg", "flac": "audio/flac", "m4a": "audio/mp4",
    "mp4": "video/mp4", "webm": "video/webm", "ogv": "video/ogg", "mov": "video/quicktime",
}  # fmt: skip
_LISTED = 200


class _Player(DisplayObject):
    """A recording: from its bytes or a file, or at an address that only the reader's browser loads."""

    element, fallback = "audio", "audio/wav"

    def __init__(self, data: Any = None, filename: Any = None, url: str | None = None, mimetype: str | None = None) -> None:
        if isinstance(data, str) and data.startswith(("http://", "https://")):
            data, url = None, data
        elif isinstance(data, (str, os.PathLike)):
            data, filename = None, data
        path = None if filename is None else os.fspath(filename)
        super().__init__(data, None, path)
        self.url, self.filename = url, path
        if self.data is None and url is None:
            raise ValueError(f"{type(self).__name__}: give data, a file name, or a URL")
        self.mime = mimetype or _TYPES.get(str(path or url).rpartition(".")[2].lower(), self.fallback)

    def _read(self, filename: str) -> Any:
        with open(filename, "rb") as file:
            return file.read()

    def text(self) -> str:
        """Names the recording."""
        if self.data is None:
            return f"<{self.element} at {self.url}, which is loaded only by browsers>"
        return f"<{self.mime} of {len(self.data)} bytes{f': {self.filename}' if self.filename else ''}>"

    def _repr_html_(self) -> str:
        source = self.url if self.data is None else f"data:{self.mime};base64,{b64encode(self.data).decode()}"
        return f'<{self.element} controls src="{escape(str(source))}"></{self.element}>'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        forms = {"text/plain": self.text(), "text/html": self._repr_html_()}
        return forms if self.data is None else {**forms, self.mime: self.data}


class Audio(_Player):
    """Sound: also from samples between -1 and 1 and their rate; several rows are channels."""

    def __init__(
        self, data: Any = None, filename: Any = None, url: str | None = None, embed: Any = None, rate: int | None = None,
        autoplay: bool = False, normalize: bool = True, **_options: Any,
    ) -> None:  # fmt: skip
        if data is not None and not isinstance(data, (str, bytes, bytearray, os.PathLike)):
            if rate is None:
                raise ValueError("rate must be specified when data is a numpy array or list of audio samples.")
            data = _wav(data, int(rate), normalize)
        super().__init__(data, filename, url)


class Video(_Player):
    """A film."""

    element, fallback = "video", "video/mp4"

    def __init__(
        self, data: Any = None, url: str | None = None, filename: Any = None, embed: Any = None, mimetype: str | None = None,
        width: Any = None, height: Any = None, **_options: Any,
    ) -> None:  # fmt: skip
        super().__init__(data, filename, url, mimetype)


class IFrame(Pretty):
    """A page in a page, which is loaded only by browsers."""

    def __init__(self, src: Any, width: Any = "100%", height: Any = 400, **_options: Any) -> None:
        super().__init__()
        self.src, self.width, self.height = os.fspath(src), width, height

    def text(self) -> str:
        """Names the page."""
        return f"<page at {self.src}, which is loaded only by browsers>"

    def _repr_html_(self) -> str:
        size = f'width="{escape(str(self.width))}" height="{escape(str(self.height))}"'
        return f'<iframe {size} src="{escape(self.src)}" frameborder="0" allowfullscreen></iframe>'


class YouTubeVideo(IFrame):
    """A film of YouTube, by its ID."""

    def __init__(self, id: str, width: Any = 400, height: Any = 300, **_options: Any) -> None:
        super().__init__(f"https://www.youtube.com/embed/{id}", width, height)


class VimeoVideo(IFrame):
    """A film of Vimeo, by its ID."""

    def __init__(self, id: str, width: Any = 400, height: Any = 300, **_options: Any) -> None:
        super().__init__(f"https://player.vimeo.com/video/{id}", width, height)


class FileLinks(Pretty):
    """The files of a folder."""

    def __init__(self, path: Any, *_arguments: Any, recursive: bool = True, **_options: Any) -> None:
        super().__init__()
        self.path, self._recursive = os.fspath(path), recursive
        if not os.path.isdir(self.path):
            raise ValueError(f"Cannot display a file using FileLinks: {self.path} is not a directory")

    def text(self) -> str:
        """Lists the files."""
        lines: list[str] = []
        for folder, folders, files in os.walk(self.path):
            folders[:] = sorted(folders) if self._recursive else []
            lines += [f"{folder}/", *(f"  {name}" for name in sorted(files))]
            if len(lines) > _LISTED:
                return "\n".join([*lines[:_LISTED], "  …"])
        return "\n".join(lines)


class GeoJSON(JSON):
    """Places as data."""

    mime = "application/geo+json"


class ProgressBar(Pretty):
    """How much of something is done."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total, self.progress = total, 0

    def text(self) -> str:
        """Returns the numbers."""
        return f"{self.progress}/{self.total}"

    def display(self) -> None:
        """Shows it."""
        from cellblock_kernel.notebook import display

        display.display(self)

    update = display

    def __iter__(self) -> ProgressBar:
        self.progress = -1
        return self

    def __next__(self) -> int:
        self.progress += 1
        if self.progress < self.total:
            return self.progress
        self.progress = self.total
        self.display()
        raise StopIteration


def _wav(samples: Any, rate: int, normalize: bool) -> bytes:
    """Encodes samples as 16-bit WAV."""
    import wave
    from array import array

    rows = samples.tolist() if hasattr(samples, "tolist") else [list(row) if hasattr(row, "__len__") else row for row in samples]
    channels = rows if rows and isinstance(rows[0], list) else [rows]
    largest = max((abs(value) for row in channels for value in row), default=0)
    if not normalize and largest > 1:
        raise ValueError("Audio data must be between -1 and 1 when normalize=False.")
    scale = 32767 / (largest if normalize and largest else 1)
    words = array("h", (int(value * scale) for frame in zip(*channels) for value in frame))
    if sys.byteorder == "big":
        words.byteswap()
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((len(channels), 2, rate, 0, "NONE", "not compressed"))
        file.writeframes(words.tobytes())
    return buffer.getvalue()


NAMES = ("Audio", "FileLinks", "GeoJSON", "IFrame", "ProgressBar", "Video", "VimeoVideo", "YouTubeVideo")
