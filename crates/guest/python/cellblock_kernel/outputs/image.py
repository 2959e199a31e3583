"""Pillow images as PNG."""

from __future__ import annotations

import io
import sys
from typing import Any

from cellblock_kernel.outputs.limits import Limits
from cellblock_kernel.outputs.output import Output

_BytesIO = io.BytesIO


def describe(value: Any, name: str | None, limits: Limits) -> Output | None:
    """Describes a Pillow image."""
    module: Any = sys.modules.get("PIL.Image")
    if module is None or not isinstance(value, module.Image):
        return None
    buffer = _BytesIO()
    shown = value if value.mode in ("1", "L", "LA", "I", "P", "RGB", "RGBA") else value.convert("RGB")
    shown.save(buffer, "PNG")
    header = {"type": "image", "name": name, "mime": "image/png", "width": value.width, "height": value.height}
    return Output(header, [buffer.getbuffer()])
