"""Letters for terminals that have few: `-` for −, `+/-` for ±, `tau` for τ."""

from __future__ import annotations

import codecs
import unicodedata

SPELL = "plackett.spell"  # an error handler of `str.encode`, and so of a stream

PLAIN = {
    "\N{MINUS SIGN}": "-",
    "\N{PLUS-MINUS SIGN}": "+/-",
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{MULTIPLICATION SIGN}": "x",
    "\N{MIDDLE DOT}": ".",
    "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{RIGHTWARDS ARROW}": "->",
    "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{LEFT SINGLE QUOTATION MARK}": "'",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    "\N{NO-BREAK SPACE}": " ",
    "\N{BOX DRAWINGS LIGHT HORIZONTAL}": "-",
    "\N{BOX DRAWINGS LIGHT VERTICAL}": "|",
}


def spell(text: str, encoding: str) -> str:
    """`text` in letters that `encoding` has. Whoever lays out columns asks first: the spelling may be longer.

    >>> spell("PLD τ=4: −1.0 ± 0.2", "ascii"), spell("τ ± 1", "latin-1"), spell("τ ± 1", "utf-8")
    ('PLD tau=4: -1.0 +/- 0.2', 'tau ± 1', 'τ ± 1')
    """
    return text.encode(encoding, SPELL).decode(encoding, "surrogateescape")


def _plain(letter: str) -> str:
    name = unicodedata.name(letter, "")
    for kind in ("GREEK SMALL LETTER ", "GREEK CAPITAL LETTER "):
        if name.startswith(kind) and " " not in name.removeprefix(kind):
            greek = name.removeprefix(kind).lower()
            return greek if "SMALL" in kind else greek.capitalize()
    ascii_part = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
    return PLAIN.get(letter) or ascii_part or "?"


def _handle(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letter = error.object[error.start]
    if "\udc80" <= letter <= "\udcff":  # a byte of a file's name that is no text: as it is
        return bytes([ord(letter) - 0xDC00]), error.start + 1
    return _plain(letter), error.start + 1


codecs.register_error(SPELL, _handle)
