"""The module `cellblock` in cells: what Cellblock offers to code."""

import sys
from types import ModuleType
from typing import Any

from cellblock_kernel.library import missing
from cellblock_kernel.outputs.registry import register


class _Public(ModuleType):
    """Imports the errors of connectors and datasets when code names one."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise missing.attribute(f"module 'cellblock' has no attribute {name!r}", name, self)
        from cellblock_kernel.datasets import functions
        from cellblock_kernel.library import connector_errors

        errors: dict[str, type[Exception]] = {
            **connector_errors.by_name(),
            "LoadDatasetError": functions.LoadDatasetError,
            "PublishDatasetError": functions.PublishDatasetError,
        }
        offered = {"__all__": ["register", *errors], **errors}
        if name not in offered:
            raise missing.attribute(f"module 'cellblock' has no attribute {name!r}", name, self)
        self.__dict__.update(offered)
        return offered[name]

    def __dir__(self) -> list[str]:
        return list(self.__all__)


module = _Public("cellblock", "What Cellblock offers to code in a cell: `register`, and the errors of connectors and datasets.")
module.__dict__["register"] = register


def use() -> None:
    """Lets cells import it."""
    sys.modules["cellblock"] = module
