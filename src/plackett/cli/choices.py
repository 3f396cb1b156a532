"""Lists on the command line: names with commas between them, and seeds such as 0,1,2 or 0-2."""

from __future__ import annotations

import re

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
