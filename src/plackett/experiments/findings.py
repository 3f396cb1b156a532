"""What a teacher's pre-flight found, as plain figures and sentences; nothing here needs torch."""

from __future__ import annotations

from typing import Any

from plackett.errors import InputError
from plackett.experiments.records import CalibrationRecord, Document

TEMPERATURES = (0.5, 1.0, 2.0, 4.0, 8.0)
CHECK = "check.json"
HALF = 0.5  # what the label's own choice should at least keep of PLD's weight
SURE = 0.5  # a wrong class that gets more than this is likelier than all others together


class Look(Document):
    """The teacher on the same pictures, shown in one way; shares are of the pictures whose class it offers."""

    way: str
    words: str
    top1: float
    top5: float | None
    sight: dict[str, Any]


class ClassOrder(Document):
    """Whether other labels would fit the teacher's answers far better than the data's.

    Args:
        judged: pictures that it was judged on; 0 where no class has two.
        relabelled: share of them that would be right if each class were what the teacher says of its other pictures.
        as_labelled: share of them that are right as they are labelled.
        permuted: the first is so much higher that labels and logits are in different orders.
        swapped: pairs of classes that the teacher takes for one another.
        moved: classes, and what the teacher says of them instead.
        hint: what the order looks like.
    """

    judged: int
    relabelled: float | None = None
    as_labelled: float | None = None
    permuted: bool = False
    swapped: tuple[tuple[str, str], ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    hint: str | None = None


class Findings(Document):
    """All figures below `looks` are of what the teacher says in training: through the student's pictures, if given.

    Args:
        pictures: with a label that the teacher offers; the others are counted in `not_offered` and `unlabelled`.
        chance: the share that guessing would get right.
        first_choice_weight: the mean of softmax(t / tau)[label], by tau.
        temperature: the largest tau at which that mean is at least a half; else where it is highest.
        surely_wrong: share of pictures on which a wrong class gets more than a half.
        near_chance: the sentence that stops a run, where the teacher is hardly better than guessing.
    """

    teacher: str
    weights: str | None
    parameters: int
    student: str | None = None
    student_parameters: int | None
    data: str
    split: str
    pictures: int
    not_offered: int
    unlabelled: int
    unreadable: int
    classes: int
    matching: str
    chance: float
    looks: list[Look]
    order: ClassOrder
    calibration: CalibrationRecord
    first_choice_weight: dict[float, float]
    temperature: float
    surely_wrong: float
    notes: list[str]
    warnings: list[str]
    near_chance: str | None

    @property
    def through_student(self) -> Look:
        """What the teacher says in training."""
        return next((look for look in self.looks if look.way == "student"), self.looks[0])

    def require(self, *, allow_weak: bool = False) -> None:
        """Stops where the teacher is near chance, with the likely causes."""
        if self.near_chance is not None and not allow_weak:
            raise InputError(self.near_chance)


class Checked(Document):
    """The findings as a folder keeps them, `check.json`; `key` says of what they are."""

    key: dict[str, Any]
    findings: Findings


def suggested(weights: dict[float, float]) -> float:
    """The largest tau at which the label's own choice keeps half of PLD's weight; else the one where it keeps most.

    >>> suggested({1.0: 0.996, 2.0: 0.960, 4.0: 0.776, 8.0: 0.449})
    4.0
    >>> suggested({1.0: 0.3, 2.0: 0.2})
    1.0
    """
    enough = [tau for tau, weight in weights.items() if weight >= HALF]
    return max(enough) if enough else max(weights, key=lambda tau: weights[tau])
