"""scikit-learn's digits: 1,797 real handwritten digits of 8x8 pixels, on disk wherever scikit-learn is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from plackett.data.pictures import Pictures
from plackett.data.seeds import derive
from plackett.data.sight import Sight
from plackett.errors import InputError, missing_extra

TEACHER_PICTURES = 1078
SIGHT = Sight(8, (0.0,), (1.0,), crop=1.0)


@dataclass(frozen=True)
class Digits:
    """`teacher`: every training picture; `student`: the few of them that the student may use; `test`: the rest."""

    teacher: Pictures
    student: Pictures
    test: Pictures


def load(*, labelled: int = 150, seed: int = 0) -> Digits:
    """The stratified split of `seed`: 1,078 pictures for the teacher, some of them for the student, 719 to test."""
    everything = _read()
    if not len(everything.classes) <= labelled <= TEACHER_PICTURES:
        raise InputError(
            f"The student's labelled pictures must number between {len(everything.classes)} and {TEACHER_PICTURES}, "
            f"not {labelled}."
        )
    order = stratified(everything.targets, seed=derive(seed, "digits"))
    train, test = everything.subset(order[:TEACHER_PICTURES]), everything.subset(order[TEACHER_PICTURES:])
    # The beginning of a stratified order is itself stratified.
    return Digits(train, train.subset(torch.arange(labelled)), test)


def stratified(targets: Tensor, *, seed: int) -> Tensor:
    """A random order of the pictures in which every beginning holds the classes in nearly their true shares."""
    generator = torch.Generator().manual_seed(seed)
    place = torch.empty(len(targets), dtype=torch.float64)
    for label in range(int(targets.max()) + 1):
        members = (targets == label).nonzero().squeeze(1)
        members = members[torch.randperm(len(members), generator=generator)]
        # Member i of n stands near (i + 1/2) / n of the way; the jitter mixes the classes within a round.
        jitter = torch.rand(len(members), generator=generator, dtype=torch.float64)
        place[members] = (torch.arange(len(members), dtype=torch.float64) + jitter) / len(members)
    return place.argsort(stable=True)


def _read() -> Pictures:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise missing_extra("sklearn", "demo", "The data set of digits") from error
    data = load_digits()
    inputs = torch.from_numpy(data.images).float().div(16).unsqueeze(1)
    return Pictures(inputs, torch.from_numpy(data.target).long(), tuple(str(name) for name in data.target_names))
