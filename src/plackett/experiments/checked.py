"""A teacher and pictures by their names, and what the pre-flight finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from plackett import models
from plackett.data.folders import open_pictures
from plackett.errors import InputError
from plackett.experiments.findings import Findings
from plackett.experiments.preflight import Watch, preflight
from plackett.models.named import named
from plackett.teachers.matched import read_names


@dataclass(frozen=True)
class Order:
    """What is asked; see the options of `plackett check`."""

    teacher: str
    data: Path
    weights: str | None = None
    classes: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    sight: Mapping[str, Any] | None = None
    student: str | None = None
    student_sight: Mapping[str, Any] | None = None
    split: str = "val"
    limit: int | None = None
    workers: int = 0
    size: int = 64
    device: torch.device | str = "cpu"
    trust: bool = False


def check(order: Order, watch: Watch | None = None) -> Findings:
    opened = open_pictures(order.data)
    source = {"train": opened.train, "val": opened.val, "test": opened.test}[order.split]
    if source is None:
        there = [name for name in ("train", "val", "test") if getattr(opened, name) is not None]
        raise InputError(
            f"{order.data} has no split {order.split!r}; it has {', '.join(there)}: name one with --split."
        )
    teacher = named(order.teacher, weights=order.weights, trust=order.trust, sight=order.sight, options=order.options)
    student = None
    if order.student is not None:
        student = named(order.student, classes=opened.classes, sight=order.student_sight)
    elif order.student_sight is not None:
        raise InputError("--student-sight says how a student sees, and none is named with --student.")
    return preflight(
        teacher,
        source,
        student=None if student is None else student.sight,
        student_name=order.student,
        student_parameters=None if student is None else models.parameters(student.network),
        names=None if order.classes is None else read_names(order.classes, opened.classes),
        data=order.data,
        split=order.split,
        limit=order.limit,
        size=order.size,
        workers=order.workers,
        device=order.device,
        notes=opened.notes,
        watch=watch,
    )
