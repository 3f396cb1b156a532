"""Lists on the command line: names with commas between them, seeds such as 0,1,2 or 0-2, and key=value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from plackett.errors import InputError


def names(given: str | None) -> list[str] | None:
    """
    >>> names("kd, pld"), names(None)
    (['kd', 'pld'], None)
    """
    return None if given is None else [name for each in given.split(",") if (name := each.strip())]


def seeds(given: str | None) -> list[int] | None:
    """
    >>> seeds("0-2,7")
    [0, 1, 2, 7]
    """
    if given is None:
        return None
    found: list[int] = []
    for each in given.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", each)
        if match is None:
            raise InputError(f"--seeds {given!r} is not a list of seeds; write 0,1,2 or 0-2.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise InputError(f"--seeds {given!r}: {first} to {last} is empty; write the smaller one first.")
        found += range(first, last + 1)
    return list(dict.fromkeys(found))


def numbers(option: str, given: str | None) -> list[float] | None:
    """
    >>> numbers("--temperatures", "2,1,0.5")
    [2.0, 1.0, 0.5]
    """
    if given is None:
        return None
    try:
        return [float(each) for each in given.split(",")]
    except ValueError:
        raise InputError(f"{option} {given!r} is not a list of numbers; write them with commas, as 2,1,0.5.") from None


def pairs(given: Iterable[str], option: str) -> dict[str, Any]:
    """
    >>> pairs(["depth=4", "name=lite2", "rate=1e-3"], "--teacher-option")
    {'depth': 4, 'name': 'lite2', 'rate': 0.001}
    """
    from plackett import yamls

    found = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{option} {each!r} is not key=value.")
        try:
            found[key.strip()] = yamls.load(value)
        except yamls.YAMLError:
            raise InputError(f"{option} {each!r}: {value!r} cannot be read; put quotes around a text.") from None
    return found


def sight(given: str | None, option: str) -> dict[str, Any] | None:
    """How a network sees, in part; a fraction is a number, and three numbers have blanks between them.

    >>> sight("size=260, mean=127/255, std=0.2 0.2 0.3", "--teacher-sight")
    {'size': 260, 'mean': 0.4980392156862745, 'std': [0.2, 0.2, 0.3]}
    """
    if given is None:
        return None
    found = pairs(given.split(","), option)
    for key in ("mean", "std", "crop"):
        if key in found:
            numbers = [_number(word, option) for word in str(found[key]).split()]
            found[key] = numbers[0] if len(numbers) == 1 else numbers
    return found


def _number(word: str, option: str) -> float:
    above, _, below = word.partition("/")
    try:
        return float(above) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{option}: {word!r} is not a number; write 0.5 or 127/255.") from None
