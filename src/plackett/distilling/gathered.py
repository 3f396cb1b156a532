"""Teacher, student and pictures: opened by their names, and held against one another before anything is trained."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import nn

from plackett import models
from plackett.data.folders import joined, open_pictures, unlabelled
from plackett.data.parts import Subset
from plackett.data.sight import Sight
from plackett.data.source import Source
from plackett.distilling import terms
from plackett.distilling.asked import Asked
from plackett.errors import InputError
from plackett.models import answer_in_float32
from plackett.models.named import Named, named
from plackett.models.tapped import channels, stages, tapped
from plackett.teachers import SeeingTeacher
from plackett.teachers.matched import read_names
from plackett.teachers.seen import trained


@dataclass(frozen=True)
class Gathered:
    """`train` holds the unlabelled pictures too; `test` is None where only `val` is there to test with."""

    asked: Asked
    train: Source
    labelled: int
    val: Source
    test: Source | None
    notes: tuple[str, ...]
    teacher: Named | None
    student: Named
    trust: bool

    @property
    def classes(self) -> tuple[str, ...]:
        return self.val.classes

    @property
    def sight(self) -> Sight:
        """How students see; the teacher is shown their pictures."""
        return self.student.sight

    @property
    def tested(self) -> Source:
        """What the last figures are of."""
        return self.val if self.test is None else self.test

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """What both networks have by that name: of what was asked for, where anything was."""
        if self.teacher is None:
            return ()
        theirs = (*self.asked.teacher_taps, *stages(self.teacher.network))
        ours = dict.fromkeys((*self.asked.student_taps, *stages(self.student.network)))
        shared = tuple(stage for stage in ours if stage in theirs)
        asked = tuple(tap for tap in shared if tap in {**self.asked.student_taps, **self.asked.teacher_taps})
        return asked or shared

    @property
    def teacher_names(self) -> tuple[str, ...] | None:
        given = self.asked.teacher_classes
        return None if given is None else read_names(given, self.classes)

    @cached_property
    def teacher_sha256(self) -> str | None:
        return None if self.teacher is None else _digest(self.teacher.network)

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """Of every part of the pictures, the same for the same files, labels and classes."""
        parts = {"train": self.train, "val": self.val, "test": self.test}
        return {name: source.fingerprint()[:16] for name, source in parts.items() if source is not None}

    def seeing(self, taps: tuple[str, ...]) -> SeeingTeacher | None:
        """The teacher that is shown the students' pictures, and gives these features."""
        if self.teacher is None:
            return None
        teacher = replace(self.teacher, network=_tapped(self.teacher.network, taps, self.asked.teacher_taps))
        return SeeingTeacher(teacher, self.sight, self.classes, names=self.teacher_names, taps=taps)

    def builder(self, taps: tuple[str, ...]) -> Callable[[], nn.Module]:
        """Makes a student anew; what is random in it comes from torch's own random numbers."""

        def build() -> nn.Module:
            network = self._student().network
            answer_in_float32(network, len(self.classes))
            return _tapped(network, taps, self.asked.student_taps)

        return build

    def channels(self, taps: tuple[str, ...]) -> tuple[dict[str, int], dict[str, int]]:
        """How many each feature has, of the student and of the teacher."""
        if not taps:
            return {}, {}
        with torch.random.fork_rng(devices=[]):
            student = self.builder(taps)()
        teacher, planes = self.seeing(taps), len(self.sight.mean)
        assert teacher is not None  # whose features are read
        return (
            channels(student, taps, self.sight.size, planes),
            channels(teacher.network, taps, self.sight.size, planes),
        )

    def terms(self, suggested: float | None) -> dict[str, dict[str, Any]]:
        """By title what every objective is made of."""
        found = terms.methods(self.asked)
        if suggested is not None:
            found = terms.with_temperature(self.asked, found, suggested)
        taps = terms.reads(found, self.stages)
        return terms.projected(found, self.stages, *self.channels(taps))

    def _student(self) -> Named:
        return student_of(self.asked, self.classes, self.trust)


def gather(asked: Asked, *, trust: bool = False, limit: int | None = None) -> Gathered:
    """Opens what is named; `limit` takes at most so many pictures of each part, evenly spaced."""
    methods = terms.methods(asked)  # a name that does not exist is told before anything is loaded
    opened = open_pictures(asked.data, splits=asked.splits or None)
    if opened.train is None:
        raise InputError(
            f"{asked.data} has no pictures to train on: put them into {asked.data}/train, a folder a class."
        )
    if opened.val is None:
        raise InputError(
            f"{asked.data} has no pictures to validate with, and none can be held out, for no class has two: add some."
        )
    train, val, test = (
        None if part is None else _limited(part, limit) for part in (opened.train, opened.val, opened.test)
    )
    assert train is not None
    assert val is not None
    labelled = len(train)
    if asked.unlabelled is not None:
        train = joined(train, _limited(unlabelled(asked.unlabelled), limit))
    teacher = None if not asked.teacher else named(
        asked.teacher, weights=asked.teacher_weights, trust=trust,
        sight=asked.teacher_sight or None, options=asked.teacher_options,
    )  # fmt: skip
    if teacher is not None:
        trained(teacher)
    with torch.random.fork_rng(devices=[]):
        student = student_of(asked, opened.classes, trust)
    notes = (*opened.notes, *(f"Student: {note}" for note in student.notes))
    found = Gathered(asked, train, labelled, val, test, notes, teacher, student, trust)
    with torch.random.fork_rng(devices=[]):
        seeing = found.seeing(())  # class counts and names that do not fit are told here
    if seeing is not None:
        terms.require_label_weight(methods, seeing.matched.missing)
    return found


def student_of(asked: Asked, classes: tuple[str, ...], trust: bool) -> Named:
    return named(
        asked.student, classes=classes, weights=asked.student_weights, trust=trust,
        sight=asked.student_sight or None, options=asked.student_options,
    )  # fmt: skip


def parameters(network: Named) -> int:
    return models.parameters(network.network)


def _tapped(network: nn.Module, taps: tuple[str, ...], places: Mapping[str, str]) -> nn.Module:
    """A copy with these taps, or the network itself where there are none."""
    return tapped(copy.deepcopy(network), {tap: places.get(tap, tap) for tap in taps}) if taps else network


def _limited(source: Source, limit: int | None) -> Source:
    if limit is None or limit >= len(source):
        return source
    return Subset(source, torch.linspace(0, len(source) - 1, limit).round().long())


def _digest(network: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
