"""What the pre-flight finds, against figures that follow by hand, and each of its sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from plackett.data.sight import IMAGENET_MEAN, IMAGENET_STD, Sight
from plackett.data.source import NO_LABEL
from plackett.errors import InputError
from plackett.evaluation import calibration
from plackett.experiments.findings import TEMPERATURES, Findings
from plackett.experiments.preflight import preflight
from tests.experiments.shades import (
    SHADES,
    SIGHT,
    ByShade,
    Grey,
    a_teacher,
    grey,
    logits_of,
    shade_names,
)

# What ImageNet's usual normalisation makes of a grey p: SCALE p - SHIFT, averaged over the channels.
SCALE = sum(1 / s for s in IMAGENET_STD) / 3
SHIFT = sum(m / s for m, s in zip(IMAGENET_MEAN, IMAGENET_STD, strict=True)) / 3


def sentence(*given: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        preflight(*given, **options)
    return str(caught.value)


def looked(found: Findings) -> dict[str, float]:
    return {look.way: round(look.top1, 4) for look in found.looks}


def test_a_right_teacher_its_own_way_and_with_the_usual_normalisation() -> None:
    """With the usual normalisation p looks like 4.43 p - 2.01: only the shades 10, 150 and 230 stay the nearest."""
    found = preflight(a_teacher(), grey(), data="shades")
    nearest = [
        min(range(12), key=lambda k, v=v: abs(SCALE * v / 255 - SHIFT - SHADES[k] / 255))  # type: ignore[misc]
        for v in SHADES
    ]
    assert [k for k, said in enumerate(nearest) if said == k] == [0, 7, 11]
    assert looked(found) == {"own": 1.0, "usual": 0.25}
    assert found.looks[0].top5 == 1.0
    assert found.looks[0].words == "its own way (16 px of 16, bicubic, mean 0.000, std 1.000)"
    assert found.looks[1].words == "its own way, but with ImageNet's usual normalisation"
    assert found.looks[1].sight["mean"] == IMAGENET_MEAN
    assert found.warnings == [
        "With ImageNet's usual normalisation this teacher loses 75.0 points of top-1 (25.0 % instead of 100.0 %): "
        "whatever program feeds it must use its own."
    ]
    assert found.matching == (
        "Nothing says what the teacher's 12 classes are called; they are taken to be in the data's order."
    )
    assert (found.pictures, found.classes, found.chance, found.near_chance) == (48, 12, 1 / 12, None)
    assert (found.not_offered, found.unlabelled, found.unreadable) == (0, 0, 0)
    found.require()


def test_a_teacher_of_the_usual_normalisation_is_not_shown_it_twice() -> None:
    usual = replace(a_teacher(ByShade(12, SCALE, SHIFT)), sight=Sight(16, crop=1.0))
    found = preflight(usual, grey())
    assert looked(found) == {"own": 1.0}
    assert found.warnings == []


def test_through_the_students_pictures_the_normalisation_is_converted() -> None:
    """Grey stays grey at any size, so that nothing is lost where mean and std are converted as they should be."""
    student = Sight(8, IMAGENET_MEAN, IMAGENET_STD, crop=1.0)
    found = preflight(a_teacher(), grey(), student=student, student_parameters=3)
    assert looked(found) == {"own": 1.0, "student": 1.0, "usual": 0.25}
    assert found.through_student.words == "through the student's pictures (8 px of 8, resized to 16 px)"
    assert found.through_student.sight == student.as_dict()
    assert len(found.warnings) == 1  # of the normalisation that is not its own


class ByTexture(nn.Module):
    """Class 1 where neighbours differ by a quarter on average, class 0 where they hardly do."""

    def forward(self, pictures: Tensor) -> Tensor:
        rough = (pictures[..., 1:] - pictures[..., :-1]).abs().mean((1, 2, 3))
        return torch.stack([torch.full_like(rough, 0.25), rough], -1) * 20


class Striped(Grey):
    """Class 1 has stripes of one pixel, which a small picture cannot show."""

    def read(self, index: int) -> Any:
        image = super().read(index).resize((32, 32))
        if int(self.targets[index]) == 1:
            for x in range(0, 32, 2):
                image.paste((255, 255, 255), (x, 0, x + 1, 32))
        return image


def test_what_a_smaller_picture_costs_is_measured_and_said() -> None:
    pictures = Striped((10,) * 60, torch.arange(60) % 2, ("plain", "striped"))
    teacher = replace(a_teacher(ByTexture(), 2), sight=replace(SIGHT, size=32))
    found = preflight(teacher, pictures, student=replace(SIGHT, size=8), data="stripes")
    assert looked(found)["own"] == 1.0
    assert looked(found)["student"] == 0.5
    assert (
        "Through the student's pictures the teacher loses 50.0 points of top-1 (50.0 % instead of 100.0 %): a student "
        "of 32 px, or a teacher trained on smaller pictures, would learn from the better one."
    ) in found.warnings
    assert found.near_chance == (
        "The teacher is right on 50.0 % of 60 pictures of stripes (val), where guessing would be right on 50.0 %. "
        "Likely causes: the student's pictures show it too little (100.0 % with pictures of its own size; take a "
        "student of a larger size). --allow-weak-teacher goes on all the same."
    )


def test_the_same_way_of_seeing_is_looked_at_once() -> None:
    seen: list[int] = []

    class Counted(Grey):
        def read(self, index: int) -> Any:
            seen.append(index)
            return super().read(index)

    pictures = grey(2)
    found = preflight(a_teacher(), Counted(pictures.shades, pictures.targets, pictures.classes), student=SIGHT)
    assert seen == list(range(24))
    assert looked(found) == {"own": 1.0, "student": 1.0, "usual": 0.25}
    assert found.through_student.words == "through the student's pictures (16 px of 16)"


def test_figures_are_those_of_the_definition() -> None:
    """Pictures between two shades, whose teacher is unsure or wrong: every figure again from logits in float64."""
    shades = (10, 30, 50, 12, 19, 21, 44, 29, 70, 90)
    pictures = Grey(shades, torch.tensor([0, 1, 2, 0, 1, 0, 3, 2, 3, 4]), shade_names(5))
    found = preflight(a_teacher(outputs=5), pictures)
    logits = logits_of(shades, 5)
    said, label = logits.argmax(-1), pictures.targets
    assert found.looks[0].top1 == (said == label).double().mean() == 0.6
    assert found.looks[0].top5 is None  # of five classes all are among the first five
    for tau in TEMPERATURES:
        weight = (logits / tau).softmax(-1)[torch.arange(10), label].mean()
        assert found.first_choice_weight[tau] == pytest.approx(float(weight), abs=1e-5)
    enough = [tau for tau in TEMPERATURES if found.first_choice_weight[tau] >= 0.5]
    assert enough
    assert found.temperature == max(enough)
    assert found.calibration.ece == pytest.approx(calibration(logits.float(), label).ece, abs=1e-5)
    sure = logits.softmax(-1).max(-1).values > 0.5
    assert found.surely_wrong == ((said != label) & sure).double().mean() > 0


def test_permuted_labels_are_recognised_and_their_order_is_named() -> None:
    """The teacher counts 0, 1, 2, ..., 11; folders lie in the order of letters: 0, 1, 10, 11, 2, ..."""
    letters = sorted(map(str, range(12)))
    pictures = grey(6, letters, [SHADES[int(name)] for name in letters])
    found = preflight(a_teacher(), pictures, data="digits")
    assert found.order.permuted
    assert (found.order.judged, found.order.relabelled, found.order.as_labelled) == (72, 1.0, 2 / 12)
    assert found.warnings[-1] == (
        "Labels and logits look to be in different orders: 16.7 % are right as labelled, 100.0 % where each class is "
        "what the teacher says of its other pictures ('10' is taken for '8', '11' is taken for '9', '2' is taken for "
        "'10'); the teacher counts the classes as numbers (2 before 10), the "
        "folders are in the order of letters. Name the teacher's classes with --teacher-classes."
    )
    assert found.near_chance == (
        "The teacher is right on 16.7 % of 72 pictures of digits (val), where guessing would be right on 8.3 %. Likely "
        "causes: its classes are in another order than the data's (relabelled, 100.0 % would be right; name them with "
        "--teacher-classes). --allow-weak-teacher goes on all the same."
    )
    counted = [str(k) for k in range(12)]
    mended = preflight(a_teacher(), pictures, names=counted)
    assert looked(mended)["own"] == 1.0
    assert not mended.order.permuted
    assert mended.matching == (
        "Teacher and data have the same 12 classes in another order; the teacher's logits are reordered."
    )


@pytest.mark.parametrize(("shown", "hint"), [
    (lambda k: (k + 1) % 12, "the teacher's classes stand one place further on"),
    (lambda k: (k - 1) % 12, "the teacher's classes stand one place before"),
    (lambda k: 11 - k, "the teacher's classes stand in the reverse order"),
    (lambda k: 5 * k % 12, None),
])  # fmt: skip
def test_orders_that_people_mix_up_have_a_name(shown: Any, hint: str | None) -> None:
    found = preflight(a_teacher(), grey(6, shades=[SHADES[shown(k)] for k in range(12)]))
    assert found.order.permuted
    assert found.order.hint == hint
    assert found.order.relabelled == 1.0


def test_two_swapped_classes_are_named() -> None:
    shades = list(SHADES)
    shades[3], shades[8] = shades[8], shades[3]
    found = preflight(a_teacher(), grey(6, shades=shades))
    assert not found.order.permuted
    assert found.order.swapped == (("shade-03", "shade-08"),)
    assert found.warnings[-1] == (
        "The teacher takes these classes for one another: 'shade-03' and 'shade-08'. Look whether their labels are "
        "exchanged."
    )


def test_a_teacher_that_is_only_weak_is_not_taken_for_permuted() -> None:
    """Every picture is taken for the first class: no other labels would fit."""
    shade = 10
    pictures = Grey((shade,) * 48, torch.arange(12).repeat_interleave(4), shade_names())
    found = preflight(a_teacher(), pictures, data="shades", split="train")
    assert not found.order.permuted
    assert found.order.swapped == ()
    assert found.near_chance == (
        "The teacher is right on 8.3 % of 48 pictures of shades (train), where guessing would be right on 8.3 %. "
        "Likely causes: its weights are of another task or were never trained; its classes are others than the data's "
        "or in another order (--teacher-classes); it sees pictures in another way (--teacher-sight). "
        "--allow-weak-teacher goes on all the same."
    )
    with pytest.raises(InputError) as caught:
        found.require()
    assert str(caught.value) == found.near_chance
    found.require(allow_weak=True)


def test_a_teacher_of_the_usual_normalisation_that_is_fed_otherwise_is_found_out() -> None:
    found = preflight(a_teacher(ByShade(12, SCALE, SHIFT)), grey(), data="shades")
    assert looked(found) == {"own": round(1 / 12, 4), "usual": 1.0}
    assert found.warnings[0] == (
        "With ImageNet's usual normalisation this teacher gains 91.7 points of top-1 (100.0 % instead of 8.3 %): what "
        "is taken for its own is probably wrong; say how it sees with --teacher-sight."
    )
    assert found.near_chance == (
        "The teacher is right on 8.3 % of 48 pictures of shades (val), where guessing would be right on 8.3 %. Likely "
        "causes: it was trained with ImageNet's usual normalisation (100.0 % with it; say so with --teacher-sight). "
        "--allow-weak-teacher goes on all the same."
    )


def test_classes_that_only_one_of_the_two_has_are_said_and_left_out() -> None:
    """Of the data's six the teacher offers four; it has two others besides."""
    names = (*shade_names(4), "other", "more")
    pictures = grey(5, (*shade_names(4), "new", "newer"), SHADES[:6])
    found = preflight(a_teacher(outputs=6), pictures, names=names)
    assert found.matching == (
        "Teacher and data share 4 classes of 6, among which the teacher chooses. The teacher does not offer 'new', "
        "'newer'. 2 of the teacher's classes are not in the data ('other', 'more')."
    )
    assert (found.pictures, found.not_offered, found.chance) == (20, 10, 1 / 4)
    assert looked(found)["own"] == 1.0
    four = logits_of([shade for shade in SHADES[:4] for _ in range(5)], 4)  # the choice among four, and no more
    weight = four.softmax(-1)[torch.arange(20), torch.arange(4).repeat_interleave(5)].mean()
    assert found.first_choice_weight[1.0] == pytest.approx(float(weight), abs=1e-5)


def test_pictures_without_a_label_and_unreadable_ones_are_counted_and_left_out() -> None:
    pictures = grey(3)
    targets = pictures.targets.clone()
    targets[:2] = NO_LABEL
    found = preflight(a_teacher(), replace(pictures, targets=targets, broken=(5, 6)), student=replace(SIGHT, size=8))
    assert (found.pictures, found.unlabelled, found.unreadable) == (32, 2, 2)
    assert looked(found)["own"] == 1.0


def test_a_limit_is_evenly_spaced() -> None:
    found = preflight(a_teacher(), grey(10), limit=12)
    assert found.pictures == 12
    assert found.looks[0].top1 == 1.0
    assert preflight(a_teacher(), grey(2), limit=1000).pictures == 24


def test_one_picture_a_class_says_nothing_of_their_order() -> None:
    assert preflight(a_teacher(), grey(1)).notes == [
        "Whether labels and logits are in the same order cannot be judged: no class has two pictures here."
    ]
    assert preflight(a_teacher(), grey(2)).notes == []


def test_a_student_that_is_not_the_smaller_one() -> None:
    found = preflight(a_teacher(), grey(), student=SIGHT, student_parameters=24)
    assert found.warnings[-1] == (
        "The student has 24 parameters and the teacher 24: the student is not the smaller one, so look whether the two "
        "were exchanged."
    )


def test_it_is_said_what_is_being_done() -> None:
    told: list[tuple[str, int, int]] = []
    preflight(a_teacher(), grey(2), student=replace(SIGHT, size=8), size=16, watch=lambda *each: told.append(each))
    assert told == [
        ("the teacher, shown pictures its own way", 0, 24),
        ("the teacher, shown pictures its own way", 16, 24),
        ("the teacher, shown the student's pictures", 0, 24),
        ("the teacher, shown the student's pictures", 16, 24),
    ]


class Broken(ByShade):
    """Infinity times zero on bright pictures, as of weights that ran away."""

    def forward(self, pictures: Tensor) -> Tensor:
        logits = super().forward(pictures)
        return torch.where(pictures.mean((1, 2, 3))[:, None] > 0.8, torch.nan, logits)


def test_what_cannot_be_looked_at_gets_a_sentence() -> None:
    teacher = a_teacher()
    assert sentence(teacher, grey(), limit=0) == "At least 1 picture must be looked at, not 0."
    assert sentence(replace(teacher, weights=None), grey()) == (
        "The teacher by_shade has no weights: name a file with --teacher-weights, or pretrained for its library's own."
    )
    assert sentence(replace(teacher, fresh_head=True), grey()) == (
        "The teacher by_shade has a head of 12 classes that was drawn at random; make it with the head that its "
        "weights have."
    )
    assert sentence(a_teacher(outputs=5), grey()) == (
        "Teacher has 5 classes, data 12, and nothing says what the teacher's are called: name them with "
        "--teacher-classes FILE (one a line, in the order of its logits), or take a teacher that was trained on these "
        "classes."
    )
    nothing = replace(grey(1), targets=torch.full((12,), NO_LABEL))
    assert sentence(teacher, nothing, data="pets") == (
        "None of the 12 pictures of pets (val) has a label that the teacher offers, so nothing can be said of it."
    )
    assert sentence(a_teacher(Broken(12)), grey(), data="pets") == (
        "The teacher by_shade gives logits that are not finite on 8 of 48 pictures of pets (val), shown pictures its "
        "own way: its weights are damaged, or it is fed in a way that it was not trained for."
    )


def test_pictures_of_which_none_can_be_read() -> None:
    five = replace(grey(1, shades=SHADES[:5]), broken=(0, 1, 2, 3, 4))
    assert sentence(a_teacher(outputs=5), five, data="pets") == (
        "None of the 5 pictures of pets (val) can be read (the first: 0.png: broken)."
    )
