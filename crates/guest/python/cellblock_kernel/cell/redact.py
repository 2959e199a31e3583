"""Removes secrets from text that a model will read: credentials in URLs, bearer tokens, `token=…` pairs."""

import re

_NAME = r"[\w.-]*(?:token|api[_-]?key|apikey|access[_-]?key|secret|passw(?:or)?d|pwd|signature|credential)[\w-]*"
_QUERY = re.compile(rf"([?&](?:{_NAME}|key|sig|auth)=)[^&#\s'\"<>)]+", re.IGNORECASE)
_USER = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^/\s:@]*:)[^@/\s]+(?=@)", re.IGNORECASE)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_LAST = _NAME.removesuffix(r"[\w-]*")
_PAIR = re.compile(rf"(\b{_LAST}(?:=[\"']?|[\"']\s?:\s?[\"']))[^\s&'\",;)]+", re.IGNORECASE)

_MASK = "[redacted]"


def source(text: str) -> str:
    """Redacts a line of source: only text that cannot be a Python expression."""
    return _BEARER.sub(_mask_word, _USER.sub(_mask, _QUERY.sub(_mask, text)))


def message(text: str) -> str:
    """Redacts a message, in which a bare `password=hunter2` is also a secret."""
    return _PAIR.sub(_mask, source(text))


# Functions, because a template string would be compiled by a module that a cell may have replaced.
def _mask(found: re.Match[str]) -> str:
    return found[1] + _MASK


def _mask_word(found: re.Match[str]) -> str:
    return f"{found[1]} {_MASK}"
