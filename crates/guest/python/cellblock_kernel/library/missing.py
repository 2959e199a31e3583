"""Errors for names that do not exist, with what Python needs to suggest others."""

from __future__ import annotations

from typing import Any


def attribute(message: str, name: str, owner: Any) -> AttributeError:
    """Returns the error for an attribute that `owner` lacks."""
    error = AttributeError(message)
    # Set afterward, because their constructors take these only since Python 3.10.
    error.name, error.obj = name, owner
    return error


def variable(message: str, name: str) -> NameError:
    """Returns the error for a variable that does not exist."""
    error = NameError(message)
    error.name = name
    return error
