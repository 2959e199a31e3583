"""Fonts of the image for letters that the libraries' own fonts lack, such as Chinese, Arabic and Hindi.

An image links them to one folder. Every library has its own way to them: matplotlib takes letters only from the
fonts that code names, so its lists of fonts continue with these; vl-convert takes them from any font in a folder
that it knows; Pillow looks for files by name in the folders of an environment variable.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from cellblock_kernel.cell.on_import import on_import

_DATA = os.path.join(sys.base_prefix, "share")
_FOLDER = os.path.join(_DATA, "fonts")
_FORMATS = (".ttf", ".otf", ".ttc")
# A system may have thousands.
_MAX_FILES = 60
_CJK = "Noto Sans CJK"
# Fonts of other systems that code names for Chinese, Japanese and Korean, by the form of the letters that it wants.
_OF_OTHER_SYSTEMS = {
    f"{_CJK} SC": (
        "SimHei", "SimSun", "NSimSun", "KaiTi", "FangSong", "Microsoft YaHei", "PingFang SC", "Heiti SC", "STHeiti", "STSong",
        "Hiragino Sans GB", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN",
        "Arial Unicode MS",
    ),
    f"{_CJK} TC": ("Microsoft JhengHei", "PingFang TC", "PingFang HK", "Heiti TC", "MingLiU", "PMingLiU", "Noto Sans TC"),
    f"{_CJK} JP": (
        "MS Gothic", "MS PGothic", "Meiryo", "Yu Gothic", "Hiragino Sans", "Hiragino Kaku Gothic ProN", "Hiragino Maru Gothic Pro",
        "IPAexGothic", "IPAGothic", "IPAPGothic", "TakaoGothic", "TakaoPGothic", "VL Gothic", "VL PGothic", "Noto Sans JP",
    ),
    f"{_CJK} KR": ("Malgun Gothic", "NanumGothic", "NanumBarunGothic", "AppleGothic", "Apple SD Gothic Neo", "Noto Sans KR"),
}  # fmt: skip


def install() -> None:
    """Offers the image's fonts to libraries that are imported from now on."""
    if not os.path.isdir(_FOLDER):
        return
    os.environ.setdefault("XDG_DATA_DIRS", ":".join(dict.fromkeys((_DATA, "/usr/local/share", "/usr/share"))))
    on_import("matplotlib.font_manager", _in_matplotlib)
    on_import("matplotlib._text_helpers", _in_warnings)
    on_import("vl_convert", _in_vl_convert)


def _files() -> list[str]:
    found = [
        os.path.join(folder, name) for folder, _, names in os.walk(_FOLDER) for name in names if name.lower().endswith(_FORMATS)
    ]
    return sorted(found)[:_MAX_FILES]


def _in_vl_convert(module: Any) -> None:
    module.register_font_directory(_FOLDER)


def _in_warnings(module: Any) -> None:
    original = module.warn_on_missing_glyph
    if hasattr(original, "is_short"):
        return

    def warn(codepoint: Any, names: str) -> None:
        first, *others = sorted(names.split(", "), key=lambda name: (name.startswith("Noto"), name))
        original(codepoint, f"{first} and {len(others)} others" if len(others) > 2 else names)

    warn.is_short = True  # type: ignore[attr-defined]
    module.warn_on_missing_glyph = warn


def _in_matplotlib(module: Any) -> None:
    manager_class = module.FontManager
    original = manager_class._find_fonts_by_props
    if hasattr(original, "continues"):
        return
    fallback: list[Any] = []

    def find(self: Any, prop: Any, fontext: str = "ttf", *arguments: Any, **options: Any) -> Any:
        found = original(self, prop, fontext, *arguments, **options)
        if fontext != "ttf":
            return found
        if not fallback:
            fallback.extend(_fallback(module))
        return [*found, *(path for path in fallback if path not in found)]

    find.continues = True  # type: ignore[attr-defined]
    _add(module)
    manager_class._find_fonts_by_props = find


def _add(module: Any) -> None:
    """Makes the fonts known by their names, and by those that code of other systems uses."""
    fonts = module.fontManager
    known = {os.path.realpath(font.fname) for font in fonts.ttflist}
    for file in _files():
        if os.path.realpath(file) not in known:
            try:
                fonts.addfont(file)
            except Exception:
                continue  # a font that matplotlib cannot read
    import dataclasses

    names = {font.name for font in fonts.ttflist}
    for font in list(fonts.ttflist):
        for name in _OF_OTHER_SYSTEMS.get(font.name, ()):
            if name not in names:
                fonts.ttflist.append(dataclasses.replace(font, name=name))
    fonts._findfont_cached.cache_clear()


def _fallback(module: Any) -> list[Any]:
    """Returns one upright font per script, symbols last because they have letters of their own."""
    files = {os.path.realpath(file) for file in _files()}
    chosen: dict[str, Any] = {}
    for font in module.fontManager.ttflist:
        wanted = font.style == "normal" and "Mono" not in font.name and os.path.realpath(font.fname) in files
        if wanted and font.fname not in (other.fname for other in chosen.values()):
            chosen[font.name] = font
    ordered = sorted(chosen.values(), key=lambda font: (_CJK not in font.name, "Symbol" in font.name or "Emoji" in font.name))
    return [module.FontPath(os.path.realpath(font.fname), font.index) for font in ordered]
