"""Whether a teacher has something to teach, on these pictures and through this student's eyes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from plackett import models
from plackett.data.loading import Viewed
from plackett.data.parts import Subset
from plackett.data.sight import IMAGENET_MEAN, IMAGENET_STD, Sight
from plackett.data.source import NO_LABEL, Source
from plackett.errors import InputError
from plackett.evaluation import accuracy, calibration
from plackett.experiments.class_order import class_order
from plackett.experiments.findings import SURE, TEMPERATURES, ClassOrder, Findings, Look, suggested
from plackett.experiments.records import CalibrationRecord
from plackett.experiments.sentences import near_chance, noticed, of_sight
from plackett.models.named import Named
from plackett.teachers import SeeingTeacher, first_choice_weight
from plackett.teachers.seen import conversion

Watch = Callable[[str, int, int], None]
OWN, STUDENT, USUAL = "own", "student", "usual"
NOT_JUDGED = "Whether labels and logits are in the same order cannot be judged: no class has two pictures here."


def preflight(
    teacher: Named,
    source: Source,
    *,
    student: Sight | None = None,
    student_name: str | None = None,
    student_parameters: int | None = None,
    names: Sequence[str] | None = None,
    data: str | Path = "",
    split: str = "val",
    limit: int | None = None,
    size: int = 64,
    workers: int = 0,
    device: torch.device | str = "cpu",
    notes: Sequence[str] = (),
    watch: Watch | None = None,
) -> Findings:
    """Looks at pictures through the teacher, three times where there is a difference to see.

    Args:
        teacher: with weights.
        source: labelled pictures, best ones that the teacher was not trained on.
        student: how the student will see; the teacher then also reads pictures that were made for it.
        student_name: what the student is called.
        student_parameters: of the student, to warn where it is not the smaller one.
        names: of the teacher's classes, where they are not those that it says.
        data: what the pictures are called in what is said of them.
        split: which of them these are.
        limit: at most so many pictures, evenly spaced.
        size: pictures a batch.
        workers: processes that read ahead.
        device: where the teacher runs.
        notes: what was noticed of teacher and data before.
        watch: told what is done, how many pictures of it, and of how many.
    """
    shown = _limited(source, limit)
    parameters = models.parameters(teacher.network)
    looking = _Looking(teacher, shown, names, size, workers, torch.device(device), f"{data} ({split})", watch)
    own, usual = looking.looked(OWN, teacher.sight, others=_usual(teacher.sight))
    looks = [own]
    if student is not None:
        looks.append(replace(own, way=STUDENT) if student == teacher.sight else looking.looked(STUDENT, student)[0])
    said = looks[-1]
    if usual is not None:
        looks.append(usual)
    if not len(said.targets):
        raise InputError(
            f"None of the {len(shown)} pictures of {data} ({split}) has a label that the teacher offers, so nothing "
            "can be said of it."
        )
    weights = first_choice_weight(said.logits, said.targets, TEMPERATURES)
    matched = looking.matched
    chance = 1 / sum(place is not None for place in matched.places)
    found = [_look(each, teacher) for each in looks]
    order = class_order(said.logits.argmax(-1), said.targets, shown.classes, max(look.top1 for look in found))
    surest, first = said.logits.softmax(-1).max(-1)
    weak = near_chance(found, chance, len(said.targets), order, str(data), split)
    return Findings(
        teacher=teacher.spec,
        weights=teacher.weights,
        parameters=parameters,
        student=student_name,
        student_parameters=student_parameters,
        data=str(data),
        split=split,
        pictures=len(said.targets),
        not_offered=said.not_offered,
        unlabelled=said.unlabelled,
        unreadable=looking.unreadable,
        classes=len(shown.classes),
        matching=matched.said(),
        chance=chance,
        looks=found,
        order=order,
        calibration=CalibrationRecord(**asdict(calibration(said.logits, said.targets))),
        first_choice_weight=weights,
        temperature=suggested(weights),
        surely_wrong=((first != said.targets) & (surest > SURE)).double().mean().item(),
        notes=[*teacher.notes, *notes, *([] if order.judged else [NOT_JUDGED])],
        warnings=_warnings(looks, found, order, parameters, student_parameters),
        near_chance=weak,
    )


@dataclass(frozen=True)
class _Seen:
    """Logits in the data's order and labels, of the pictures whose label the teacher offers."""

    way: str
    sight: Sight
    logits: Tensor
    targets: Tensor
    unlabelled: int
    not_offered: int

    @property
    def right(self) -> Tensor:
        return self.logits.argmax(-1) == self.targets


class _Looking:
    """The teacher on the same pictures, shown in several ways."""

    def __init__(
        self,
        teacher: Named,
        source: Source,
        names: Sequence[str] | None,
        size: int,
        workers: int,
        device: torch.device,
        called: str,
        watch: Watch | None,
    ) -> None:
        self.teacher, self.source, self.names, self.size = teacher, source, names, size
        self.called = called
        self.workers, self.device, self.watch = workers, device, watch
        self.unreadable = 0
        self.matched = SeeingTeacher(teacher, teacher.sight, source.classes, names=names).matched

    def looked(self, way: str, sight: Sight, others: Sight | None = None) -> tuple[_Seen, _Seen | None]:
        """Through pictures made for `sight`; and what it says where the same pixels are normalised as `others` does."""
        seeing = SeeingTeacher(self.teacher, sight, self.source.classes, names=self.names)
        seeing.network.to(self.device)
        viewed = Viewed(self.source, sight, size=self.size, workers=self.workers, device=self.device)
        again = None if others is None else [t.to(self.device) for t in conversion(sight, others)]
        said: list[Tensor] = []
        otherwise: list[Tensor] = []
        done = 0
        try:
            for batch in viewed.batches():
                if self.watch is not None:
                    self.watch(f"the teacher, {_WAYS[way]}", done, len(self.source))
                said.append(seeing.logits(batch.inputs).cpu())
                if again is not None:
                    otherwise.append(seeing.logits(batch.inputs * again[0] + again[1]).cpu())
                done += len(batch.targets)
        finally:
            viewed.close()
        self.unreadable = len(viewed.bad)
        if not said:
            bad = viewed.bad[0]
            raise InputError(
                f"None of the {len(self.source)} pictures of {self.called} can be read (the first: {bad.name}: "
                f"{bad.why})."
            )
        targets = viewed.targets
        first = self._seen(way, sight, self._finite(torch.cat(said), way), targets)
        if others is None:
            return first, None
        return first, self._seen(USUAL, others, torch.cat(otherwise), targets)

    def _finite(self, logits: Tensor, way: str) -> Tensor:
        offered = logits[:, [place is not None for place in self.matched.places]]
        if bad := int((~offered.isfinite().all(-1)).sum()):
            raise InputError(
                f"The teacher {self.teacher.spec} gives logits that are not finite on {bad} of {len(logits)} pictures "
                f"of {self.called}, {_WAYS[way]}: its weights are damaged, or it is fed in a way that it was not "
                "trained for."
            )
        return logits

    def _seen(self, way: str, sight: Sight, logits: Tensor, targets: Tensor) -> _Seen:
        offered = torch.tensor([place is not None for place in self.matched.places])
        labelled = targets != NO_LABEL
        counts = labelled & offered[targets.clamp_min(0)]
        unlabelled = int((~labelled).sum())
        return _Seen(way, sight, logits[counts], targets[counts], unlabelled, int((labelled & ~counts).sum()))


_WAYS = {OWN: "shown pictures its own way", STUDENT: "shown the student's pictures"}


def _limited(source: Source, limit: int | None) -> Source:
    if limit is None or limit >= len(source):
        return source
    if limit < 1:
        raise InputError(f"At least 1 picture must be looked at, not {limit}.")
    return Subset(source, torch.linspace(0, len(source) - 1, limit).round().long())


def _usual(sight: Sight) -> Sight | None:
    """The same pixels, normalised as nearly every program does unless it is told otherwise."""
    if len(sight.mean) != 3 or (sight.mean, sight.std) == (IMAGENET_MEAN, IMAGENET_STD):
        return None
    return replace(sight, mean=IMAGENET_MEAN, std=IMAGENET_STD)


def _look(seen: _Seen, teacher: Named) -> Look:
    top5 = accuracy(seen.logits, seen.targets, 5) if seen.logits.shape[-1] > 5 else None
    return Look(
        way=seen.way,
        words=of_sight(seen.way, seen.sight, teacher.sight),
        top1=accuracy(seen.logits, seen.targets),
        top5=top5,
        sight=seen.sight.as_dict(),
    )


def _warnings(
    seen: Sequence[_Seen], looks: Sequence[Look], order: ClassOrder, parameters: int, student: int | None
) -> list[str]:
    right = {each.way: each.right for each in seen}
    by_way = {look.way: look for look in looks}
    return list(noticed(by_way, {way: _clearly(right[OWN], right[way]) for way in right}, order, parameters, student))


def _clearly(own: Tensor, other: Tensor) -> bool:
    """The same pictures, right in one way and wrong in the other, are too uneven for chance (McNemar, two errors)."""
    lost, won = int((own & ~other).sum()), int((other & ~own).sum())
    return abs(lost - won) > 2 * math.sqrt(max(1, lost + won)) and abs(lost - won) >= 0.01 * len(own)
