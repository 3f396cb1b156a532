"""A run folder -> the plane of weights around one of its students, on pictures that it was tested on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from plackett.analysis.given import Given
from plackett.analysis.weights import WeightSlice
from plackett.data import Pictures, cifar100, digits
from plackett.errors import InputError, did_you_mean
from plackett.evaluation import predict
from plackett.experiments import predictions, weights
from plackett.experiments.records import Run, the_run
from plackett.experiments.study import terms_of

DIGITS = ("digits", "scikit-learn digits")
ALIKE = 0.05  # logits kept in half precision, and computed in bfloat16 perhaps, against the same ones computed now


def around(folder: Path, student: str | None, pictures: int, seed: int = 0) -> tuple[WeightSlice, Given, str]:
    """The plane, the student's own objective, and what was taken, in words.

    The pictures are evenly spaced test pictures: of these the run has kept what its teacher says.
    """
    run = the_run(folder)
    name = _chosen(run, student)
    held = weights.read(folder, name)
    test = _test(run)
    if not 1 <= pictures <= len(test):
        raise InputError(f"There are {len(test)} test pictures; take 1 to {len(test)} of them, not {pictures}.")
    said = predictions.read(folder / predictions.PREDICTIONS)
    which = torch.linspace(0, len(test) - 1, pictures).round().long()
    part = test.subset(which)
    _same(folder, name, predict(held.network, part), torch.from_numpy(said.students[name])[which])
    teacher = None if said.teacher is None else torch.from_numpy(said.teacher)[which]
    # In double precision, where the differences between neighbours are not lost.
    plane = WeightSlice.around(held.network.double(), part.inputs.double(), part.targets, _double(teacher), seed)
    told = (
        f"Weights of {name} ({held.spec}) in {folder}, filter-normalised directions, seed {seed}, "
        f"{pictures} test pictures, batch norms as in evaluation, float64;"
    )
    return plane, Given(f"{name}, as trained", _terms(run, name)), told


def _chosen(run: Run, student: str | None) -> str:
    known = list(run.results.students) if run.results is not None else []
    if not known:
        raise InputError(f"{run.folder} has no finished student. {' '.join(run.problems[:1])}".rstrip())
    if student is None and len(known) > 1:
        raise InputError(f"{run.folder} has {len(known)} students; say which with --student: {', '.join(known)}.")
    name = student or known[0]
    if name not in known:
        raise InputError(f"{run.folder} has no student {name!r}; {did_you_mean(name, known)}.")
    return name


def _double(logits: Tensor | None) -> Tensor | None:
    return None if logits is None else logits.double()


def _test(run: Run) -> Pictures:
    data = run.record.data.name
    if data in DIGITS:
        return digits.load().test
    if data == "cifar100":
        return cifar100.NORMALISE.pictures(cifar100.load(None).test)
    raise InputError(
        f"{run.folder} was tested on {data!r}; landscapes are drawn around students of digits and cifar100."
    )


def _terms(run: Run, name: str) -> Mapping[str, Any]:
    terms = terms_of(run, name)
    if terms is None:
        raise InputError(f"{run.folder} does not say what {name!r} was trained by; name a loss.")
    return terms


def _same(folder: Path, name: str, now: Tensor, then: Tensor) -> None:
    """The data must be what the run was tested on, and the weights the student's."""
    off = float((now - then).abs().max() / then.abs().max().clamp_min(1.0))
    if not off <= ALIKE:
        raise InputError(
            f"{name!r} in {folder} does not say of these pictures what the run has kept of it (logits are off by "
            f"{100 * off:.0f} %): the data here are others, or the files are of different runs."
        )
