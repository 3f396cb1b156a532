"""What a teacher's pre-flight says in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from plackett.data.sight import Sight
from plackett.experiments.findings import ClassOrder, Look

OF_THE_GAP = 0.05  # between guessing and perfection: a teacher that closes less has hardly anything to say


def of_sight(way: str, seen: Sight, teacher: Sight) -> str:
    if way == "student":
        enlarged = "" if seen.size == teacher.size else f", resized to {teacher.size} px"
        return f"through the student's pictures ({seen.size} px of {seen.resized}{enlarged})"
    if way == "usual":
        return "its own way, but with ImageNet's usual normalisation"
    return f"its own way ({seen.size} px of {seen.resized}, {seen.interpolation}, {normalisation(seen)})"


def normalisation(sight: Sight) -> str:
    """
    >>> normalisation(Sight(260, (127 / 255,) * 3, (128 / 255,) * 3))
    'mean 0.498, std 0.502'
    """
    return ", ".join(f"{name} {_figures(values)}" for name, values in (("mean", sight.mean), ("std", sight.std)))


def _figures(values: Sequence[float]) -> str:
    each = [f"{value:.3f}" for value in values]
    return each[0] if len(set(each)) == 1 else " ".join(each)


def noticed(
    looks: Mapping[str, Look], clearly: Mapping[str, bool], order: ClassOrder, parameters: int, student: int | None
) -> Iterator[str]:
    """Warnings; `clearly` says which way of showing differs from the teacher's own by more than chance has it."""
    own = looks["own"]
    usual = looks.get("usual")
    if usual is not None and clearly["usual"]:
        if usual.top1 < own.top1:
            yield (
                f"With ImageNet's usual normalisation this teacher loses {_points(own.top1 - usual.top1)} of top-1 "
                f"({_percent(usual.top1)} instead of {_percent(own.top1)}): whatever program feeds it must use its own."
            )
        else:
            yield (
                f"With ImageNet's usual normalisation this teacher gains {_points(usual.top1 - own.top1)} of top-1 "
                f"({_percent(usual.top1)} instead of {_percent(own.top1)}): what is taken for its own is probably "
                "wrong; say how it sees with --teacher-sight."
            )
    theirs = looks.get("student")
    if theirs is not None and clearly["student"] and theirs.top1 < own.top1:
        yield (
            f"Through the student's pictures the teacher loses {_points(own.top1 - theirs.top1)} of top-1 "
            f"({_percent(theirs.top1)} instead of {_percent(own.top1)}): a student of {own.sight['size']} px, or a "
            "teacher trained on smaller pictures, would learn from the better one."
        )
    yield from of_order(order)
    if student is not None and student >= parameters:
        yield (
            f"The student has {student:,} parameters and the teacher {parameters:,}: the student is not the smaller "
            "one, so look whether the two were exchanged."
        )


def of_order(order: ClassOrder) -> Iterator[str]:
    if order.permuted and order.relabelled is not None and order.as_labelled is not None:
        hint = f"; {order.hint}" if order.hint else ""
        pairs = ", ".join(f"{a!r} is taken for {b!r}" for a, b in order.moved[:3])
        yield (
            f"Labels and logits look to be in different orders: {_percent(order.as_labelled)} are right as labelled, "
            f"{_percent(order.relabelled)} where each class is what the teacher says of its other pictures"
            f"{f' ({pairs})' if pairs else ''}{hint}. Name the teacher's classes with --teacher-classes."
        )
    elif order.swapped:
        pairs = ", ".join(f"{a!r} and {b!r}" for a, b in order.swapped[:5])
        yield f"The teacher takes these classes for one another: {pairs}. Look whether their labels are exchanged."


def near_chance(
    looks: Sequence[Look], chance: float, pictures: int, order: ClassOrder, data: str, split: str
) -> str | None:
    """The sentence that stops a run: what it gets right through the student's pictures is hardly more than guessing."""
    own = looks[0]
    said = next((look for look in looks if look.way == "student"), own)
    # Few pictures cannot tell from chance, but a teacher that closes half of the gap has something to say.
    error = min(3 * math.sqrt(chance * (1 - chance) / pictures), (1 - chance) / 2)
    enough = chance + max(error, OF_THE_GAP * (1 - chance))
    if said.top1 > enough:
        return None
    causes = []
    if order.permuted and order.relabelled is not None:
        causes.append(
            f"its classes are in another order than the data's (relabelled, {_percent(order.relabelled)} would be "
            "right; name them with --teacher-classes)"
        )
    usual = next((look for look in looks if look.way == "usual"), None)
    if usual is not None and usual.top1 > max(enough, own.top1):
        causes.append(
            f"it was trained with ImageNet's usual normalisation ({_percent(usual.top1)} with it; say so with "
            "--teacher-sight)"
        )
    if said is not own and own.top1 > enough:
        causes.append(
            f"the student's pictures show it too little ({_percent(own.top1)} with pictures of its own size; take a "
            "student of a larger size)"
        )
    if not causes:
        causes = [
            "its weights are of another task or were never trained",
            "its classes are others than the data's or in another order (--teacher-classes)",
            "it sees pictures in another way (--teacher-sight)",
        ]
    return (
        f"The teacher is right on {_percent(said.top1)} of {pictures:,} pictures of {data} ({split}), where guessing "
        f"would be right on {_percent(chance)}. Likely causes: {'; '.join(causes)}. --allow-weak-teacher goes on all "
        "the same."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"
