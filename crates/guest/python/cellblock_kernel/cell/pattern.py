"""Regular expressions that few cells need, compiled when they are first used: compiling them takes longer than a
cell. What guards or redacts compiles its own at once, before any cell can interfere."""

import re
from typing import Any

_METHODS = ("fullmatch", "match", "search", "sub")
_compile = re.compile
_patterns: list[Any] = []


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        """Compiles it: until then it has no methods."""
        compiled = _compile(*self._given)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Returns a regular expression, not yet compiled."""
    made: Any = _Pattern(text, flags)
    _patterns.append(made)
    return made  # type: ignore[no-any-return]


def compile_all() -> None:
    """Compiles every pattern of the modules that are imported, for a process that forks kernels."""
    for made in _patterns:
        made.match  # noqa: B018
