"""`show()` of libraries that would open a window or a browser: it is `display()`."""

from __future__ import annotations

from typing import Any

from cellblock_kernel.cell.on_import import on_import
from cellblock_kernel.notebook.display import display


def install() -> None:
    """Changes the libraries, now or when they are imported."""
    on_import("PIL.ImageShow", _pillow)
    on_import("plotly.io._renderers", _plotly)


def _pillow(module: Any) -> None:
    def show(image: Any, title: str | None = None, **options: Any) -> bool:
        display(image)
        return True

    module.show = show


def _plotly(module: Any) -> None:
    def show(fig: Any, *arguments: Any, **options: Any) -> None:
        if isinstance(fig, dict):
            # Only here, because the module is being imported when this is defined.
            from plotly.graph_objects import Figure

            fig = Figure(fig)
        display(fig)

    module.show = show
