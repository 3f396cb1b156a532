"""Pictures that cannot be read: named, counted, and up to a limit no reason to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn

import torch
from torch import Tensor

from plackett.data.source import Source
from plackett.errors import InputError

SHARE, AT_LEAST = 0.01, 10


@dataclass(frozen=True)
class Bad:
    """A picture that could not be read."""

    index: int
    name: str
    why: str


class Unreadable:
    """What of `source` could not be read; beyond `limit` an error."""

    def __init__(self, source: Source, limit: int | None, told: Callable[[Bad], None] | None) -> None:
        if limit is not None and limit < 0:
            raise InputError(f"The limit of unreadable pictures is at least 0, not {limit}.")
        self._source, self._told = source, told
        self.limit = max(AT_LEAST, int(SHARE * len(source))) if limit is None else limit
        self.found: list[Bad] = []
        self._known: set[int] = set()

    def add(self, bad: Iterable[tuple[int, str]]) -> None:
        for index, why in bad:
            if index in self._known:
                continue
            self._known.add(index)
            self.found.append(Bad(index, self._source.name(index), why))
            if self._told is not None:
                self._told(self.found[-1])
        if len(self.found) > self.limit:
            first = self.found[0]
            raise InputError(
                f"{len(self.found)} of {len(self._source):,} pictures cannot be read, and at most {self.limit} may be "
                f"(the first: {first.name}: {first.why}). Repair or remove them, or allow more with bad_limit."
            )

    def no_other(self, index: int) -> NoReturn:
        label = int(self._source.targets[index])
        kind = f"of class {self._source.classes[label]!r}" if label >= 0 else "without a label"
        raise InputError(
            f"{self._source.name(index)} cannot be read, nor can any other picture {kind} that was tried; "
            "look at those files."
        )

    def places(self) -> Tensor:
        return torch.tensor(sorted(self._known), dtype=torch.int64)
