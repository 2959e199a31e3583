"""Encodings of texts that are not UTF-8, found by their bytes."""

from __future__ import annotations

import codecs
import re

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = re.compile(rb"[\x80-\xff]+")
# Bytes of a run that are enough to judge it.
_JUDGED = 1 << 16

Choice = tuple[str, str]


def wide(head: bytes) -> Choice | None:
    """Returns the codec and the name of a text whose characters have two or four bytes."""
    for mark, codec, name in _MARKS:
        if head.startswith(mark):
            return codec, name
    # Without a mark, every other byte of a text with mostly Latin letters is zero.
    pairs = len(head) // 2
    even, odd = head[::2].count(0), head[1::2].count(0)
    if pairs >= 2 and odd > pairs * 0.6 and even < pairs * 0.1:
        return "utf-16-le", "UTF-16 without a mark"
    if pairs >= 2 and even > pairs * 0.6 and odd < pairs * 0.1:
        return "utf-16-be", "UTF-16 without a mark"
    return None


def is_damaged_utf8(sample: bytes) -> bool:
    """Returns whether a text was written as UTF-8, except for a few bytes."""
    if sample.startswith(codecs.BOM_UTF8):
        return True
    whole = _SEQUENCE.sub(b"", sample)
    stray = sum(map(len, _HIGH.findall(whole)))
    sequences = (len(sample) - len(whole)) // 2
    return sequences >= stray


def legacy(sample: bytes) -> list[Choice]:
    """Returns codecs for a text that is not UTF-8, the likeliest first."""
    if b"\0" in sample:
        return []
    high = b"".join(_HIGH.findall(sample))[:_JUDGED]
    for codec, name, is_it in (
        ("gb18030", "GBK", _is_chinese),
        ("cp949", "EUC-KR", _is_korean),
        ("cp932", "Shift_JIS", _is_japanese),
        ("big5hkscs", "Big5", _is_traditional),
        ("cp1251", "Windows-1251", _is_cyrillic),
    ):
        if is_it(sample, high):
            return [(codec, name)]
    return [("cp1252", "Windows-1252"), ("latin-1", "Latin-1")]


def _share(pairs: list[tuple[int, int]], leads: range, trails: range) -> float:
    return sum(lead in leads and trail in trails for lead, trail in pairs) / len(pairs)


def _pairs(sample: bytes) -> list[tuple[int, int]] | None:
    """Returns the pairs of high bytes; None if more than a few stand alone, as letters of European languages do."""
    runs = [run for run in _HIGH.findall(sample[:_JUDGED]) if run]
    alone = sum(len(run) % 2 for run in runs)
    if not runs or alone > len(runs) * 0.02:
        return None
    return [(run[at], run[at + 1]) for run in runs for at in range(0, len(run) - 1, 2)]


def _is_korean(sample: bytes, _high: bytes) -> bool:
    return _is_hangul(_pairs(sample))


def _is_hangul(pairs: list[tuple[int, int]] | None) -> bool:
    # The frequent Chinese characters are in the same place and more: only enough text tells the two apart.
    return bool(pairs) and len(pairs or ()) >= 12 and _share(pairs or [], range(0xB0, 0xC9), range(0xA1, 0xFF)) > 0.97


def _is_chinese(sample: bytes, _high: bytes) -> bool:
    pairs = _pairs(sample)
    if not pairs or _is_hangul(pairs):
        return False
    # The first level of GB 2312 has the characters that texts are made of. Letters of European languages are above it.
    frequent = _share(pairs, range(0xB0, 0xD8), range(0xA1, 0xFF))
    marks = _share(pairs, range(0xA1, 0xA4), range(0xA1, 0xFF))
    return frequent >= 0.6 and frequent + marks >= 0.7


def _is_japanese(sample: bytes, high: bytes) -> bool:
    try:
        text = sample[:_JUDGED].decode("cp932", "ignore")
        kana = sum("\u3041" <= it <= "\u30fe" for it in text)
        wide = sum(it > "\u3000" for it in text)
        half = sum("\uff61" <= it <= "\uff9f" for it in text)
    except UnicodeError:
        return False
    return bool(high) and kana >= 3 and kana > wide * 0.15 and half < kana * 0.2


def _is_traditional(sample: bytes, high: bytes) -> bool:
    # Most second bytes of Big5 are letters and signs of ASCII or above 0xA1; its frequent first bytes end at 0xC6.
    text = sample[:_JUDGED].decode("big5hkscs", "replace")
    wide = [it for it in text if it >= "\u2e80"]
    broken = text.count("\ufffd")
    if len(wide) < 2 or broken > len(wide) * 0.02:
        return False
    frequent = sum("\u4e00" <= it <= "\u9fff" and it.encode("big5", "replace")[0] <= 0xC6 for it in wide)
    # In European text a high byte is followed by a lowercase letter; in Big5 a third of the second bytes are below 0x80.
    leads = sum(0xA4 <= byte <= 0xC6 for byte in high)
    return frequent > len(wide) * 0.8 and leads > len(high) * 0.5


def _is_cyrillic(sample: bytes, high: bytes) -> bool:
    runs = _HIGH.findall(sample[:_JUDGED])
    letters = sum(byte >= 0xC0 or byte in b"\xa8\xb8" for byte in high)
    small = sum(byte >= 0xE0 for byte in high)
    return len(high) >= 6 and letters >= len(high) * 0.9 and small >= len(high) * 0.6 and len(high) >= 3 * len(runs)
