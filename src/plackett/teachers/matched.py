"""Which of a teacher's logits stands for which class of the data.

Luce's axiom says what a teacher of other classes can teach: the choice among those that both have. Its logits are put
into the data's order, and a class that it does not offer is `-inf`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plackett.errors import InputError, MissingExtraError
from plackett.models.imagenet import SUBSETS, wnids, words

Kind = Literal["same", "assumed", "permuted", "shared"]
WNID = re.compile(r"n\d{8}")


@dataclass(frozen=True)
class Matched:
    """For each class of the data the place of its logit, None where the teacher does not offer it.

    Args:
        places: as many as the data has classes.
        kind: "same" names in the same order, "permuted", "shared" in part; "assumed" where the teacher's are unknown.
        missing: classes of the data that the teacher does not offer.
        unused: classes of the teacher that the data does not have.
    """

    places: tuple[int | None, ...]
    kind: Kind
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def said(self) -> str:
        n = len(self.places)
        if self.kind == "same":
            return f"Teacher and data have the same {n} classes in the same order."
        if self.kind == "assumed":
            return f"Nothing says what the teacher's {n} classes are called; they are taken to be in the data's order."
        if self.kind == "permuted":
            return f"Teacher and data have the same {n} classes in another order; the teacher's logits are reordered."
        lacks = f"The teacher does not offer {listed(self.missing)}. " if self.missing else ""
        more = f"{len(self.unused)} of the teacher's classes are not in the data ({listed(self.unused)})."
        return (
            f"Teacher and data share {n - len(self.missing)} classes of {n}, among which the teacher chooses. {lacks}"
            f"{more if self.unused else ''}"
        ).rstrip()


def match(data: Sequence[str], outputs: int, names: Sequence[str] | None) -> Matched:
    """The teacher's `outputs`, called `names` where that is known, for the data's classes.

    >>> match(["cat", "dog"], 3, ["bird", "dog", "cat"]).places
    (2, 1)
    >>> match(["cat", "dog", "eel"], 3, ["eel", "dog", "bird"]).said()
    "Teacher and data share 2 classes of 3, among which the teacher chooses. The teacher does not offer 'cat'. 1 of the teacher's classes are not in the data ('bird')."
    """  # noqa: E501
    if names is None:
        if outputs != len(data):
            raise InputError(
                f"Teacher has {outputs} classes, data {len(data)}, and nothing says what the teacher's are called: "
                "name them with --teacher-classes FILE (one a line, in the order of its logits), or take a teacher "
                "that was trained on these classes."
            )
        return Matched(tuple(range(outputs)), "assumed")
    if len(names) != outputs:
        raise InputError(
            f"{len(names)} names are given for the teacher's classes, but it gives {outputs} logits a picture."
        )
    places = _places(data, names)
    shared = [place for place in places if place is not None]
    if len(shared) < min(2, len(data)):
        raise InputError(
            f"Teacher and data share {len(shared) or 'no'} class name{'' if len(shared) == 1 else 's'}, "
            f"and a choice needs 2: the teacher's begin with "
            f"{listed(names, 3)}, the data's with {listed(data, 3)}. If the teacher's logits are in the data's order, "
            "say so with --teacher-classes same."
        )
    if places == tuple(range(outputs)):
        return Matched(places, "same")
    taken = set(shared)
    missing = tuple(name for name, place in zip(data, places, strict=True) if place is None)
    unused = tuple(name for place, name in enumerate(names) if place not in taken)
    return Matched(places, "shared" if missing or unused else "permuted", missing, unused)


def read_names(given: str | Path, data: Sequence[str]) -> tuple[str, ...]:
    """The teacher's class names: `same` as the data's, an ImageNet list such as `imagenet-1k`, or a file.

    A file is text with one name a line, or JSON: a list, or a mapping from the logit's place to the name.
    """
    if str(given) == "same":
        return tuple(data)
    if str(given) in SUBSETS:
        return wnids(str(given))
    path = Path(given)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"--teacher-classes {given} cannot be read ({reason}): name a file with one class a line, "
            f"same, or one of {', '.join(SUBSETS)}."
        ) from error
    if path.suffix != ".json":
        return tuple(line.strip() for line in text.splitlines() if line.strip())
    try:
        held = json.loads(text)
        if isinstance(held, dict):
            return tuple(str(held[str(place)]) for place in range(len(held)))
        return tuple(map(str, held))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"--teacher-classes {given} is neither a JSON list of names nor a mapping from places 0, 1, ... to names."
        ) from error


def listed(names: Iterable[str], most: int = 5) -> str:
    """
    >>> listed(["a", "b", "c"], 2)
    "'a', 'b' and 1 more"
    """
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(map(repr, every[:most])) + more


def _places(data: Sequence[str], names: Sequence[str]) -> tuple[int | None, ...]:
    exact = _index([[name] for name in names])
    wide = _index([_called(name) for name in names])
    return tuple(
        next((place for index, keys in ((exact, [name]), (wide, _called(name)))
              for key in keys if (place := index.get(_plain(key))) is not None), None)
        for name in data
    )  # fmt: skip


def _index(keys: Sequence[Sequence[str]]) -> dict[str, int]:
    """Where each key stands; one that stands for two classes says nothing."""
    found: dict[str, set[int]] = {}
    for place, each in enumerate(keys):
        for key in each:
            found.setdefault(_plain(key), set()).add(place)
    return {key: places.pop() for key, places in found.items() if len(places) == 1}


def _called(name: str) -> list[str]:
    """The name, and for a folder of ImageNet's what its pictures show."""
    if not WNID.fullmatch(name):
        return [name, *(name.split(",") if "," in name else [])]
    spoken = _words().get(name)
    return [name, *([spoken, *spoken.split(",")] if spoken else [])]


def _words() -> dict[str, str]:
    try:
        return dict(zip(wnids("imagenet-22k"), words("imagenet-22k"), strict=True))
    except MissingExtraError:
        return {}


def _plain(name: str) -> str:
    return " ".join(re.split(r"[\s_\-]+", name.casefold())).strip()
