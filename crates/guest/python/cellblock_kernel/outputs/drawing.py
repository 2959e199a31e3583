"""Pictures of Vega-Lite specifications, drawn by vl-convert in a separate process.

vl-convert runs JavaScript. Its engine starts threads that stay, so that a standby could not be made
(`soundness.py`), keeps some 100 MiB, and aborts its process if memory runs out. A forked child takes all of
that with it.
"""

from __future__ import annotations

import os
import signal
from typing import Any, NoReturn

from cellblock_kernel.cell.failure import type_name
from cellblock_kernel.outputs.rich import Bundle

SCALE = 1.5
MISSING = "this image has no renderer for charts: add vl-convert-python to its requirements"
_MEDIA_TYPES = {"png": "image/png", "svg": "image/svg+xml", "html": "text/html"}
_PIECE = 1 << 16

_fork, _pipe, _read, _write, _close, _exit, _waitpid = os.fork, os.pipe, os.read, os.write, os.close, os._exit, os.waitpid
_kill, _listdir = os.kill, os.listdir


class NotDrawn(Exception):
    """A picture that could not be drawn, and whether the specification is the cause."""

    def __init__(self, message: str, *, invalid: bool = False) -> None:
        super().__init__(message)
        self.invalid = invalid


def draw(spec: str, form: str = "png", version: str | None = None) -> bytes:
    """Draws the specification as `png`, `svg` or `html`, which contains all its JavaScript."""
    try:
        import vl_convert
    except ImportError:
        raise NotDrawn(MISSING) from None
    if _engine_runs():
        # Code of a cell has started vl-convert; a child would wait for its threads forever.
        return _drawn(vl_convert, spec, form, version)
    return _in_child(vl_convert, spec, form, version)


def bundle(spec: str, form: str) -> Bundle:
    """Draws the specification as a value to show."""
    return Bundle({_MEDIA_TYPES[form]: draw(spec, form)})


def _engine_runs() -> bool:
    for thread in _listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/comm") as file:
                if file.read().startswith("V8"):
                    return True
        except OSError:
            continue  # the child has exited meanwhile
    return False


def _drawn(vl_convert: Any, spec: str, form: str, version: str | None) -> bytes:
    options: dict[str, Any] = {"vl_version": version} if version else {}
    try:
        try:
            return _converted(vl_convert, spec, form, options)
        except ValueError as error:
            if not options or "version" not in str(error).lower():
                raise
            return _converted(vl_convert, spec, form, {})
    except (ValueError, KeyError) as error:
        raise NotDrawn(" ".join(str(error).split()), invalid=True) from None
    except Exception as error:
        raise NotDrawn(f"{type_name(type(error))}: {error}") from None


def _converted(vl_convert: Any, spec: str, form: str, options: dict[str, Any]) -> bytes:
    if form == "html":
        return str(vl_convert.vegalite_to_html(spec, bundle=True, **options)).encode()
    if form == "svg":
        return str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[], **options)).encode()
    return bytes(vl_convert.vegalite_to_png(spec, scale=SCALE, allowed_base_urls=[], **options))


def _in_child(vl_convert: Any, spec: str, form: str, version: str | None) -> bytes:
    """Draws in a child. The first byte says what follows: `p` a picture, `i` an invalid specification, `e`
    another error."""
    reading, writing = _pipe()
    try:
        child = _fork()
    except OSError as error:
        _close(reading)
        _close(writing)
        raise NotDrawn(f"no process could be started to draw it: {error.strerror}") from None
    if child == 0:
        _draw_and_exit(writing, vl_convert, spec, form, version)
    ended = False
    try:
        _close(writing)
        answer = bytearray()
        while piece := _read(reading, _PIECE):
            answer += piece
        status = _waitpid(child, 0)[1]
        ended = True
    finally:
        _close(reading)
        if not ended:
            # An interrupt of the cell: the picture is no longer needed.
            _kill(child, signal.SIGKILL)
            _waitpid(child, 0)
    kind, content = answer[:1], bytes(answer[1:])
    if kind == b"p" and status == 0:
        return content
    if kind in (b"i", b"e"):
        raise NotDrawn(content.decode("utf-8", "replace"), invalid=kind == b"i")
    raise NotDrawn(f"the renderer ended without a picture ({_cause(status)}), probably because memory was short")


def _draw_and_exit(writing: int, vl_convert: Any, spec: str, form: str, version: str | None) -> NoReturn:
    try:
        try:
            answer = b"p" + _drawn(vl_convert, spec, form, version)
        except NotDrawn as error:
            answer = (b"i" if error.invalid else b"e") + str(error).encode("utf-8", "replace")
        view = memoryview(answer)
        while view:
            view = view[_write(writing, view) :]
    finally:
        # The cell's exit handlers must not run in a copy of it.
        _exit(0)


def _cause(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"status {os.WEXITSTATUS(status)}"
    number = os.WTERMSIG(status)
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
