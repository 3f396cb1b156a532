"""The students of a cohort, as a recipe has them, and the teacher that gives what they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from plackett.data import derive
from plackett.experiments.recipes import Training
from plackett.experiments.task import Task, optimisation
from plackett.objectives import Objective
from plackett.teachers import LiveTeacher
from plackett.training import Student


def pupils(
    task: Task, network: str, asked: Mapping[str, tuple[Mapping[str, Any], Training]], seed: int, steps: int
) -> list[Student]:
    """A student for each name, with the terms of its objective and how it is trained; `steps` are those of an epoch."""
    students = []
    for name, (terms, training) in asked.items():
        with torch.random.fork_rng(devices=[]):  # some objectives have weights of their own
            torch.manual_seed(derive(seed, "objective", name))
            objective = Objective(terms)
        students.append(
            Student.make(
                name,
                lambda: task.network(network),
                objective,
                optimisation(training),
                steps_per_epoch=steps,
                seed=seed,
                device=task.device,
            )
        )
    return students


def taught_by(network: nn.Module, task: Task, students: Sequence[Student]) -> LiveTeacher:
    """With the features that any of the students reads."""
    taps = tuple(dict.fromkeys(tap for student in students for tap in student.taps))
    return LiveTeacher(network, task.classes, taps)
