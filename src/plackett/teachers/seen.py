"""A teacher that is shown the student's pictures: normalised anew, resized, its logits put into the data's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.models import answer_in_float32
from plackett.models.named import Named
from plackett.teachers.live import LiveTeacher
from plackett.teachers.matched import Matched, match
from plackett.teachers.moved import Moved


class SeeingTeacher(LiveTeacher):
    """A frozen copy of a named network, which reads batches that were made for a student.

    A picture that the student sees as (p - m_s) / s_s becomes (p - m_t) / s_t = x * s_s / s_t + (m_s - m_t) / s_t, a
    channel at a time; where the sizes differ the same crop is resized to the teacher's, by the teacher's own
    interpolation with antialiasing.

    Args:
        named: the teacher, with weights.
        sight: how the student sees.
        classes: the data's, in its order.
        names: of the teacher's classes, where they are not those that `named` knows.
        taps: which features are given besides the logits.
    """

    def __init__(
        self,
        named: Named,
        sight: Sight,
        classes: Sequence[str],
        *,
        names: Sequence[str] | None = None,
        taps: Sequence[str] = (),
    ) -> None:
        trained(named)
        self.named, self.matched = named, match(classes, named.outputs, names or named.class_names)
        super().__init__(Seen(named.network, sight, named.sight, self.matched, named.outputs), len(classes), taps)
        answer_in_float32(self.network, named.outputs)
        self._moved = Moved(self.network)

    def moved(self) -> tuple[str, ...]:
        """The names of weights or statistics that have changed since it was made; a teacher must not move."""
        return tuple(name.removeprefix("network.") for name in self._moved())


class Seen(nn.Module):
    """The network behind the glasses: the student's picture in, logits in the data's order out."""

    scale: Tensor
    shift: Tensor
    places: Tensor | None

    def __init__(self, network: nn.Module, student: Sight, teacher: Sight, matched: Matched, outputs: int) -> None:
        super().__init__()
        if len(student.mean) != len(teacher.mean):
            raise InputError(
                f"The teacher reads pictures of {len(teacher.mean)} channels, the student of {len(student.mean)}; they "
                "must be shown the same."
            )
        self.network = network
        self.size, self.interpolation = teacher.size, teacher.interpolation
        for name, values in zip(("scale", "shift"), conversion(student, teacher), strict=True):
            self.register_buffer(name, values, persistent=False)
        same = matched.places == tuple(range(outputs))
        places = None if same else torch.tensor([outputs if p is None else p for p in matched.places])
        self.register_buffer("places", places, persistent=False)

    def forward(self, inputs: Tensor, taps: Sequence[str] = ()) -> Any:
        shown = self.shown(inputs)
        if not taps:
            return self.chosen(self.network(shown))
        logits, features = self.network(shown, taps=taps)
        return self.chosen(logits), features

    def shown(self, inputs: Tensor) -> Tensor:
        if inputs.shape[-2:] != (self.size, self.size):
            inputs = resize(inputs, self.size, self.interpolation)
        return inputs * self.scale + self.shift

    def chosen(self, logits: Tensor) -> Tensor:
        """In the data's order; `-inf` where a class is not offered."""
        if self.places is None:
            return logits
        return F.pad(logits.float(), (0, 1), value=-torch.inf)[..., self.places]


def conversion(student: Sight, teacher: Sight) -> tuple[Tensor, Tensor]:
    """Scale and shift `[C, 1, 1]` from the student's normalisation to the teacher's, computed in float64."""
    theirs, ours = (
        [torch.tensor(v, dtype=torch.float64).view(-1, 1, 1) for v in (s.mean, s.std)] for s in (student, teacher)
    )
    return (theirs[1] / ours[1]).float(), ((theirs[0] - ours[0]) / ours[1]).float()


def resize(inputs: Tensor, size: int, interpolation: str) -> Tensor:
    antialias = interpolation != "nearest"
    return F.interpolate(inputs, (size, size), mode=interpolation, antialias=antialias)


def trained(named: Named) -> None:
    """A head drawn at random would teach noise, and nothing would say so."""
    if named.weights is None:
        raise InputError(
            f"The teacher {named.spec} has no weights: name a file with --teacher-weights, or pretrained for its "
            "library's own."
        )
    if named.fresh_head:
        raise InputError(
            f"The teacher {named.spec} has a head of {named.outputs} classes that was drawn at random; make it with "
            "the head that its weights have."
        )
