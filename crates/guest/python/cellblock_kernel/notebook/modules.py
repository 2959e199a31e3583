"""The modules `IPython` and `IPython.display`, for code that imports them where IPython is not installed.

They are searched last, so a real IPython in the image or in a layer is found first. They do not pass for
IPython: they have no distribution metadata, and `get_ipython()` returns None except for the session's own code,
so that libraries that look for a notebook (matplotlib, tqdm, pandas, rich, altair) find none.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from cellblock_kernel.notebook import display, shell

_PACKAGES = frozenset({"IPython", "IPython.core", "IPython.lib"})
_DISPLAYS = frozenset({"IPython.display", "IPython.core.display", "IPython.core.display_functions", "IPython.lib.display"})


class _Modules:
    """Finds and loads them. It has no base class of `importlib.abc`, which takes long to import."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leaves the creation of a module to Python."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Finds the modules that exist here."""
        if name in _PACKAGES or name in _DISPLAYS or name == "IPython.core.getipython":
            loader: Any = self
            return ModuleSpec(name, loader, is_package=name in _PACKAGES)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Fills a module."""
        names = module.__dict__
        if module.__name__ in _DISPLAYS:
            # Only here, because few cells need them.
            from cellblock_kernel.notebook import media

            names.update({name: getattr(display, name) for name in display.NAMES})
            names.update({name: getattr(media, name) for name in media.NAMES})
            names["__getattr__"] = display.__getattr__
            return
        names["get_ipython"] = shell.get_ipython
        if module.__name__ == "IPython":
            names.update(version_info=(0, 0, 0), __version__="0.0.0")


_modules = _Modules()


def install() -> None:
    """Offers the modules and the builtin `get_ipython`."""
    if _modules not in sys.meta_path:
        sys.meta_path.append(_modules)
    builtins.__dict__["get_ipython"] = shell.get_ipython
