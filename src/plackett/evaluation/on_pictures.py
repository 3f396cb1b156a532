"""A network on the pictures of a folder: through its own eyes, its answers in the order of the folder's classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from plackett.data.folders import Opened
from plackett.data.loading import Viewed
from plackett.data.parts import Subset
from plackett.data.source import Source
from plackett.errors import InputError, PlackettError, did_you_mean
from plackett.evaluation.evaluated import Quality, quality
from plackett.models.packed import Packed
from plackett.teachers.matched import listed, match

SPLITS = ("test", "val", "train")


@dataclass(frozen=True)
class Answers:
    """`logits` `[n, C]` of the readable pictures, a column a class of the folder (`-inf`: not offered)."""

    logits: Tensor
    targets: Tensor
    bad: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def quality(self, teacher: Answers | None = None) -> Quality:
        if teacher is not None and not torch.equal(teacher.targets, self.targets):
            raise PlackettError("Some pictures could be read only once; look at the disk and try again.")
        return quality(self.logits, self.targets, None if teacher is None else teacher.logits)


def split(opened: Opened, where: object, wanted: str | None = None, limit: int | None = None) -> tuple[str, Source]:
    """The pictures to test on: those of `wanted`, else test, else val; at most `limit` of them, evenly spaced.

    The name of the split says so where not all of it is taken.
    """
    if wanted is not None and wanted not in SPLITS:
        raise InputError(f"There is no --split {wanted!r}; {did_you_mean(wanted, SPLITS)}.")
    there: dict[str, Source] = {name: found for name in SPLITS if (found := getattr(opened, name)) is not None}
    name = wanted or next(iter(there))
    if name not in there:
        raise InputError(f"{where} has no pictures to {_what(name)} with; take --split {' or --split '.join(there)}.")
    if limit is not None and limit < 1:
        raise InputError(f"--limit {limit} leaves no pictures; take 1 or more.")
    source = there[name]
    if limit is None or limit >= len(source):
        return name, source
    places = (torch.arange(limit, dtype=torch.float64) * len(source) / limit).long()
    return f"{name}, {limit:,} of {len(source):,}, evenly spaced", Subset(source, places)


def _what(name: str) -> str:
    return {"test": "test", "val": "validate", "train": "train"}[name]


def to_check(packed: Packed, source: Source, most: int) -> Tensor:
    """A few of the pictures as the network reads them, `[n, channels, size, size]`, evenly spaced."""
    n = min(most, len(source))
    few = Subset(source, (torch.arange(n, dtype=torch.float64) * len(source) / n).long())
    parts = [batch.inputs for batch in Viewed(few, packed.sight, size=n).batches()]
    if not parts:
        raise InputError("None of the pictures to check with could be read.")
    return torch.cat(parts)


@torch.no_grad()
def answers(
    packed: Packed,
    source: Source,
    *,
    teacher: bool = False,
    names: Sequence[str] | None = None,
    device: torch.device | str = "cpu",
    workers: int = 0,
    size: int = 64,
    tell: Callable[[int], None] | None = None,
) -> Answers:
    """What the network says of every picture that can be read.

    Args:
        packed: the network.
        source: the pictures.
        teacher: it may lack classes of the folder, or have others: it then chooses among those that both have.
        names: of its classes, where it does not say them itself.
        device: where it runs.
        workers: processes that read ahead.
        size: pictures a batch.
        tell: told after every batch how many pictures are done.
    """
    known = names or (packed.classes if _named(packed.classes, source.classes) else None)
    outputs = len(packed.classes)
    if not teacher:
        _knows(packed, known, source.classes)
    matched = match(source.classes, outputs, known)
    places = torch.tensor([outputs if place is None else place for place in matched.places])
    network = packed.network.to(device).eval()
    viewed = Viewed(source, packed.sight, size=size, workers=workers, device=device)
    said: list[Tensor] = []
    try:
        for batch in viewed.batches():
            said.append(network(batch.inputs).float().cpu())
            if tell is not None:
                tell(sum(map(len, said)))
    finally:
        viewed.close()
    if not said:
        raise InputError("None of the pictures could be read, so there is nothing to evaluate.")
    logits = F.pad(torch.cat(said), (0, 1), value=-torch.inf)[:, places]
    offered = logits[:, places < outputs]
    if wrong := int((~offered.isfinite().all(-1)).sum()):
        raise InputError(
            f"{packed.spec} gives logits that are not finite on {wrong} of {len(logits)} pictures: its weights are "
            "damaged, or it is fed in a way that it was not trained for."
        )
    bad = tuple(source.name(each.index) for each in viewed.bad)
    notes = () if matched.kind == "same" else (_said(packed, matched.kind, matched.unused, teacher, matched.said()),)
    return Answers(logits, viewed.targets, bad, notes)


def _said(packed: Packed, kind: str, unused: Sequence[str], teacher: bool, words: str) -> str:
    if teacher:
        return words
    if kind == "assumed":
        return f"Nothing says what the classes of {packed.spec} are called; they are taken to be in the folder's order."
    more = f" It chooses among these; {len(unused)} others that it knows are left out." if unused else ""
    return f"The classes of {packed.spec} stand in another order than the folder's; they are matched by name.{more}"


def _knows(packed: Packed, known: Sequence[str] | None, classes: Sequence[str]) -> None:
    """Every class of the folder."""
    outputs = len(packed.classes)
    if known is None:
        if outputs != len(classes):
            raise InputError(
                f"{packed.spec} gives {outputs} logits and the pictures have {len(classes)} classes: name the folder "
                "that it was trained for."
            )
        return
    try:
        lacking = match(classes, outputs, known).missing
    except InputError:  # hardly anything in common
        lacking = tuple(name for name in classes if name not in known)
    if lacking:
        raise InputError(
            f"{packed.spec} was trained on {outputs} classes ({listed(known, 3)}) and does not know "
            f"{listed(lacking, 3)} of these pictures: name the folder that it was trained for."
        )


def _named(own: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether a network's classes have names, or only numbers where the folder's are something else."""
    numbers = tuple(map(str, range(len(own))))
    return tuple(own) != numbers or set(theirs) <= set(numbers)


def renamed(packed: Packed, names: Sequence[str]) -> Packed:
    """The network with other names for its classes."""
    if len(names) != len(packed.classes):
        raise InputError(
            f"{len(names)} names are given for the classes of {packed.spec}, but it gives {len(packed.classes)} logits."
        )
    return replace(packed, classes=tuple(names))
