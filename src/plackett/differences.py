"""Where two configurations differ, key by key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def differences(old: Any, new: Any, at: str = "") -> Iterator[str]:
    """
    >>> list(differences({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}))
    ['b.c was 2 and is 3']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from differences(old.get(key), new.get(key), f"{at}.{key}" if at else key)
    elif old != new:
        yield f"{at} was {json.dumps(old)} and is {json.dumps(new)}"
