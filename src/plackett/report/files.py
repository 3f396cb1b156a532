"""What lies beside the page: every plot as PNG and SVG, every table as CSV."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from plackett.files import replacing
from plackett.report.figures import Plate
from plackett.report.tables import Table

CONTENTS = "contents.txt"


def plates_and_tables(context: Any) -> Iterator[Plate | Table]:
    """All that a section shows, however deep it lies in its context."""
    if isinstance(context, Plate | Table):
        yield context
    elif isinstance(context, Mapping):
        for value in context.values():
            yield from plates_and_tables(value)
    elif isinstance(context, list | tuple):
        for value in context:
            yield from plates_and_tables(value)
    elif is_dataclass(context):
        yield from plates_and_tables(vars(context))


def write(folder: Path, shown: Mapping[str, Any]) -> list[str]:
    """Writes what sections show into `folder`, and takes away what an earlier report left there and this has not."""
    before = _listed(folder)
    names: list[str] = []
    for section, context in shown.items():
        for each in plates_and_tables(context):
            name = _unused(f"{section}-{slug(each.name)}", names)
            made = {".svg": each.svg, ".png": each.png} if isinstance(each, Plate) else {".csv": each.csv}
            for ending, content in made.items():
                _put(folder / f"{name}{ending}", content())
                names.append(f"{name}{ending}")
    for name in before - set(names):
        (folder / name).unlink(missing_ok=True)
    _put(folder / CONTENTS, "".join(f"{name}\n" for name in names).encode())
    return names


def slug(name: str) -> str:
    """A name that every file system takes.

    >>> slug("All labels: 1,078 pictures"), slug("PLD τ=4"), slug("<&>")
    ('all-labels-1-078-pictures', 'pld-tau-4', 'x')
    """
    plain = unicodedata.normalize("NFKD", name.replace("τ", "tau ").casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:80] or "x"


def _unused(name: str, taken: list[str]) -> str:
    stems = {each.rsplit(".", 1)[0] for each in taken}
    numbered = (f"{name}-{number}" for number in range(2, len(stems) + 3))
    return next(each for each in (name, *numbered) if each not in stems)


def _put(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _listed(folder: Path) -> set[str]:
    try:
        lines = (folder / CONTENTS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return set()
    return {line for line in lines if re.fullmatch(r"[a-z0-9-]+\.(svg|png|csv)", line)}
