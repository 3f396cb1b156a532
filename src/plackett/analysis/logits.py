"""A plane through the teacher's logits: s(a, b) = t + a d1 + b d2, as in the paper's appendix on loss landscapes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from plackett.analysis.convexity import Function, Surface, survey
from plackett.data import derive
from plackett.errors import InputError
from plackett.objectives import Objective

_AT_ONCE = 2_000_000  # logits that are evaluated together
_STEP = 0.005  # the softmax bends on the scale of a logit, however long the teacher is


@dataclass(frozen=True)
class LogitSlice:
    """A teacher's logits `[C]`, the label, and two orthonormal directions `[C]`, float64.

    The paper does not say what the label is; by default it is the teacher's first class.

    >>> plane = LogitSlice.random(10, seed=0)
    >>> round(float(plane.teacher.norm()), 12), abs(float(plane.first @ plane.second)) < 1e-12
    (1.0, True)
    """

    teacher: Tensor
    label: int
    first: Tensor
    second: Tensor

    @classmethod
    def random(cls, classes: int = 100, seed: int = 0, *, norm: float = 1.0, label: int | None = None) -> LogitSlice:
        """Random logits of that norm, and random orthonormal directions."""
        if classes < 3:
            raise InputError(f"A plane of logits needs at least 3 classes, not {classes}.")
        if not 0 < norm < float("inf"):
            raise InputError(f"The norm of the teacher's logits is a number above 0, not {norm:g}.")
        if label is not None and not 0 <= label < classes:
            raise InputError(f"The label is one of the classes 0 to {classes - 1}, not {label}.")
        generator = torch.Generator().manual_seed(derive(seed, "landscape"))
        drawn = torch.randn(3, classes, dtype=torch.float64, generator=generator)
        teacher = norm * (drawn[0] / drawn[0].norm())
        first, second = orthonormal(drawn[1], drawn[2])
        return cls(teacher, int(teacher.argmax()) if label is None else label, first, second)

    def function(self, objective: Objective) -> Function:
        """The objective of one picture over points `[M, 2]`, with the student's logits there."""
        teacher, target = self.teacher.unsqueeze(0), torch.tensor([self.label])

        def of_one(student: Tensor) -> Tensor:
            total: Tensor = objective(student.unsqueeze(0), teacher, target).total
            return total

        def function(points: Tensor) -> Tensor:
            students = self.teacher + points.to(self.teacher) @ torch.stack([self.first, self.second])
            size = max(1, _AT_ONCE // len(self.teacher))
            with torch.no_grad():
                return torch.cat([torch.vmap(of_one)(part) for part in torch.split(students, size)])

        return function

    def survey(self, objective: Objective, *, points: int = 51, segments: int = 20_000) -> Surface:
        """Over [-5 |t|, 5 |t|]^2."""
        radius = 5 * float(self.teacher.norm())
        step = min(radius / 1000, _STEP)
        return survey(self.function(objective), radius, points=points, step=step, segments=segments)


def orthonormal(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Gram-Schmidt, twice: once leaves what rounding has left."""
    one = first / first.norm()
    other = second - (second @ one) * one
    other = other / other.norm()
    other = other - (other @ one) * one
    return one, other / other.norm()
