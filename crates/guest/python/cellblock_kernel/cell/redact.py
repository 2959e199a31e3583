"""Removes secrets from text that a model will read: credentials in URLs, bearer tokens, `token=…` pairs."""

import re

# Whatever stands before and after a secret is kept, so no pattern looks for where its name begins: one that did would read a
# text of many short words again from each of them. Only the end of a name is looked for, within bounds.
_WORD = r"(?:token|api[_-]?key|apikey|access[_-]?key|secret|passw(?:or)?d|pwd|signature|credential)"
_QUERY = re.compile(rf"([?&](?:[\w.-]*{_WORD}[\w-]{{0,64}}|key|sig|auth)=)[^&#\s'\"<>)]+", re.IGNORECASE)
_USER = re.compile(r"((?<=[a-z0-9+.-])://[^/\s:@]*:)[^@/\s]+(?=@)", re.IGNORECASE)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_PAIR = re.compile(rf"({_WORD}(?:=[\"']?|[\"']\s?:\s?[\"']))[^\s&'\",;)]+", re.IGNORECASE)

_MASK = "[redacted]"
# Characters that are read; no output shows as many.
_CHARS = 4_000_000


def source(text: str) -> str:
    """Redacts a line of source: only text that cannot be a Python expression."""
    return _BEARER.sub(_mask_word, _USER.sub(_mask, _QUERY.sub(_mask, text)))


def message(text: str) -> str:
    """Redacts a message, in which a bare `password=hunter2` is also a secret, and leaves the middle out of one too long to read."""
    if len(text) > _CHARS:
        text = text[: _CHARS // 2] + text[-_CHARS // 2 :]
    return _PAIR.sub(_mask, source(text))


# Functions, because a template string would be compiled by a module that a cell may have replaced.
def _mask(found: re.Match[str]) -> str:
    return found[1] + _MASK


def _mask_word(found: re.Match[str]) -> str:
    return f"{found[1]} {_MASK}"
