"""Rows of student logits, teacher logits and labels, of every kind that has broken a loss somewhere."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Case(NamedTuple):
    student: Tensor
    teacher: Tensor
    target: Tensor


def random_case(rows: int = 7, classes: int = 11, dtype: torch.dtype = torch.float64, scale: float = 3.0) -> Case:
    """Tie-free with probability one."""
    student = (torch.randn(rows, classes, dtype=torch.float64) * scale).to(dtype)
    teacher = (torch.randn(rows, classes, dtype=torch.float64) * scale).to(dtype)
    return Case(student, teacher, torch.randint(0, classes, (rows,)))


def peaked_case(rows: int = 7, classes: int = 50, dtype: torch.dtype = torch.float64) -> Case:
    """A confident teacher that is mostly right, and a student that nearly agrees."""
    case = random_case(rows, classes, dtype, 1.0)
    teacher = case.teacher.scatter_add(-1, case.target[:, None], torch.full((rows, 1), 14.0, dtype=dtype))
    student = teacher + torch.randn(rows, classes, dtype=torch.float64).to(dtype)
    return Case(student, teacher, case.target)


def tied_case(rows: int = 7, classes: int = 40, dtype: torch.dtype = torch.float64) -> Case:
    """A teacher of few distinct values, -0.0 and 0.0 among them."""
    case = random_case(rows, classes, dtype)
    teacher = case.teacher.mul(0.4).round()
    teacher[:, ::7] = -0.0
    return case._replace(teacher=teacher)


def wide_case(rows: int = 7, classes: int = 40, dtype: torch.dtype = torch.float64, span: float = 200.0) -> Case:
    """Student logits that span `span` within every row."""
    case = random_case(rows, classes, dtype)
    spread = torch.linspace(-span / 2, span / 2, classes, dtype=dtype)
    return case._replace(student=spread[torch.stack([torch.randperm(classes) for _ in range(rows)])])


def gapped_case(rows: int = 7, classes: int = 20, dtype: torch.dtype = torch.float64) -> Case:
    """A teacher that does not offer some classes; every label is offered."""
    case = random_case(rows, classes, dtype)
    teacher = case.teacher.masked_fill(torch.rand(rows, classes) < 0.3, -torch.inf)
    label = case.target[:, None]
    return case._replace(teacher=teacher.scatter(-1, label, case.teacher.gather(-1, label)))


CASES = {
    "random": random_case,
    "peaked": peaked_case,
    "tied": tied_case,
    "wide": wide_case,
    "gapped": gapped_case,
}


def double(case: Case) -> Case:
    """The same numbers in float64."""
    return Case(case.student.double(), case.teacher.double(), case.target)
