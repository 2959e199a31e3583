"""The bytes of an input: where they are, how they are compressed, and in which encoding their text is."""

from __future__ import annotations

import codecs
import importlib
import io
import re
from collections.abc import Sequence
from typing import Any, NoReturn

_CHUNK = 1 << 20
# Bytes that decide about the encoding of a text that is not UTF-8.
_SAMPLE = 1 << 18
_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
)


class BadInput(ValueError):
    """An input's bytes do not match its format."""

    # Tracebacks show this name.
    __module__ = "cellblock_kernel.reading"


class Source:
    """An input while it is read."""

    def __init__(self, name: str, kind: str, path: str | None, blob: bytes | None) -> None:
        self.name = name
        self.kind = kind
        # What was detected of it, in words.
        self.notes: list[str] = []
        # A codec that also drops a byte order mark.
        self.encoding = "utf-8-sig"
        self._path = path
        self._blob = blob
        self._compression: str | None = None

    def stored(self) -> Any:
        """Opens its bytes as they are stored."""
        if self._blob is not None:
            return io.BytesIO(self._blob)
        try:
            return open(str(self._path), "rb")
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise BadInput(f"input {self.name!r} ({self.kind}): can not read {self._path}: {reason}") from error

    def open(self) -> Any:
        """Opens its bytes, decompressed."""
        file = self.stored()
        return file if self._compression is None else self._decompressed(file, self._compression)

    def content(self) -> bytes:
        """Reads all of it."""
        if self._blob is not None and self._compression is None:
            return self._blob
        with self.open() as file:
            return bytes(file.read())

    def text(self) -> str:
        """Reads all of it as text, once `settle` has found the encoding."""
        return self.content().decode(self.encoding)

    def head(self, length: int) -> bytes:
        """Reads its first bytes."""
        with self.open() as file:
            return bytes(file.read(length))

    def fail(self, cause: str, repair: str, error: BaseException | None = None) -> NoReturn:
        """Raises an error that says what is wrong and how to repair it."""
        raise BadInput(f"input {self.name!r} ({self.kind}): {cause}; {repair}") from error

    def settle(self) -> None:
        """Finds the compression and the encoding of a text. Fails if it is empty or in no known encoding."""
        self._find_compression()
        try:
            self._find_encoding()
        except BadInput:
            raise
        except Exception as error:
            if self._compression is None:
                raise
            self.fail(f"damaged {self._compression} data: {error}", "compress the file again; it may have been cut off", error)

    def _find_compression(self) -> None:
        with self.stored() as file:
            head = file.read(8)
        self._compression = next((name for magic, name in _MAGIC if head.startswith(magic)), None)
        if self._compression is not None:
            self.notes.append(f"compression: {self._compression}")

    def _decompressed(self, file: Any, name: str) -> Any:
        if name == "gzip":
            import gzip

            return gzip.GzipFile(fileobj=file)
        if name == "bzip2":
            import bz2

            return bz2.BZ2File(file)
        if name == "xz":
            import lzma

            return lzma.LZMAFile(file)
        return self._member(file) if name == "zip" else self._zstd(file)

    def _member(self, file: Any) -> Any:
        import zipfile

        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            self.fail(f"damaged zip archive: {error}", "compress the file again", error)
        names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
        if len(names) != 1:
            shown = ", ".join(names[:10]) or "none"
            self.fail(f"the zip archive has {len(names)} files ({shown})", "give one of them, or bind the archive as bytes")
        try:
            return archive.open(names[0])
        except RuntimeError as error:
            self.fail(f"the zip archive cannot be opened: {error}", "give the file without a password", error)

    def _zstd(self, file: Any) -> Any:
        module = installed("compression.zstd")
        if module is not None:
            return module.ZstdFile(file)
        pyarrow = installed("pyarrow")
        if pyarrow is None:
            self.fail("zstd data cannot be read without pyarrow", "compress the file with gzip, or decompress it")
        return io.BufferedReader(pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd"))

    def _find_encoding(self) -> None:
        head = self.head(_SAMPLE)
        if not head:
            self.fail("the file is empty", "give a file with at least a header line")
        from cellblock_kernel.library import encodings

        wide = encodings.wide(head)
        if wide is not None:
            self.encoding, name = wide
            problem = self._problem(self.encoding)
            if problem is not None:
                self.fail(f"not {name}: {problem}", "re-encode the file as UTF-8, or bind it as bytes")
            self.notes.append(f"encoding: {name}")
            return
        problem = self._problem("utf-8")
        if problem is None:
            return
        sample = head + self._part(problem)
        found = None if encodings.is_damaged_utf8(sample) else encodings.legacy(sample)
        for codec, name in found or ():
            if self._problem(codec) is None:
                self.encoding = codec
                self.notes.append(f"encoding: {name}, guessed from its bytes, as it is not UTF-8")
                return
        self.fail(
            f"not UTF-8: {problem}",
            "re-encode the file as UTF-8 (for example `iconv -f WINDOWS-1252 -t UTF-8`), "
            "or bind it as bytes and decode it in the code",
        )

    def _part(self, problem: _Undecodable) -> bytes:
        """Returns bytes around the first one that is not UTF-8, if they are not in the head."""
        if problem.offset < _SAMPLE:
            return b""
        left = problem.offset - (1 << 12)
        with self.open() as file:
            while left > 0:
                skipped = len(file.read(min(left, _CHUNK)))
                if not skipped:
                    break
                left -= skipped
            return bytes(file.read(_SAMPLE))

    def _problem(self, encoding: str) -> _Undecodable | None:
        """Returns the first byte that an encoding does not have."""
        decoder = codecs.getincrementaldecoder(encoding)()
        seen = pending = 0
        with self.open() as file:
            while True:
                chunk = file.read(_CHUNK)
                try:
                    decoder.decode(chunk, final=not chunk)
                except UnicodeDecodeError as error:
                    return _Undecodable(error.object[error.start], seen - pending + error.start)
                except UnicodeError:
                    return _Undecodable(0, seen)
                if not chunk:
                    return None
                seen += len(chunk)
                pending = len(decoder.getstate()[0])


class _Undecodable:
    """A byte that is not text."""

    def __init__(self, byte: int, offset: int) -> None:
        self.byte = byte
        self.offset = offset

    def __str__(self) -> str:
        return f"byte 0x{self.byte:02x} at offset {self.offset}"


def installed(*names: str) -> Any:
    """Returns the first of these modules that the image has, or None."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def summary(error: BaseException) -> str:
    """Returns an error's message as one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def rounds(column: Any) -> bool:
    """Whether a column of pandas holds floats so large that some whole numbers are missing between them."""
    return str(column.dtype) == "float64" and bool((column.abs() >= 2**53).any())


def contains(file: Any, patterns: Sequence[re.Pattern[bytes]], overlap: int, rest: bytes = b"") -> bool:
    """Returns whether a file has what one of the patterns describes, which is at most `overlap` bytes long. Its end counts as that
    of a line; `rest` stands before it."""
    while chunk := file.read(_CHUNK):
        data = rest + chunk
        if any(pattern.search(data) for pattern in patterns):
            return True
        # It may be in this chunk and in the next one.
        rest = data[-overlap:]
    return any(pattern.search(rest + b"\n") for pattern in patterns)


def rounding_note(name: object, example: object) -> str:
    """Returns the note for a column of fractions with a number that a float does not hold."""
    return f"`{name}` has fractions, and numbers that a float rounds, such as {example}"


def whole_numbers(pandas: Any, values: list[int | None], index: Any) -> Any:
    """Returns whole numbers with gaps as a series, of Python's own if they do not fit into 64 bits."""
    try:
        return pandas.Series(values, index=index, dtype="Int64")
    except (OverflowError, TypeError, ValueError):
        return pandas.Series(values, index=index, dtype="object")
