"""Takes secrets out of text that a model will read: credentials in URLs, bearer tokens, `token=…` pairs."""

import re

_NAME = r"[\w.-]*(?:token|api[_-]?key|apikey|access[_-]?key|secret|passw(?:or)?d|pwd|signature|credential)[\w-]*"
_QUERY = re.compile(rf"([?&](?:{_NAME}|key|sig|auth)=)[^&#\s'\"<>)]+", re.IGNORECASE)
_USER = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^/\s:@]*:)[^@/\s]+(?=@)", re.IGNORECASE)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_PAIR = re.compile(rf"(\b{_NAME}[\"']?\s?[=:]\s?[\"']?)[^\s&'\",;)]+", re.IGNORECASE)

_MASK = "[redacted]"


def source(text: str) -> str:
    """Redacts a line of source: only what can not be a Python expression."""
    text = _QUERY.sub(rf"\1{_MASK}", text)
    text = _USER.sub(rf"\1{_MASK}", text)
    return _BEARER.sub(rf"\1 {_MASK}", text)


def message(text: str) -> str:
    """Redacts a message, in which also a bare `password=hunter2` is a secret."""
    return _PAIR.sub(rf"\1{_MASK}", source(text))
