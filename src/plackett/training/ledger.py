"""What a student's steps add up to, and the first of them that was not finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from plackett.losses.rows import rows_with_label


@dataclass(frozen=True)
class Metrics:
    """Means over one epoch's training batches; `terms` are unweighted."""

    loss: float
    terms: dict[str, float]
    accuracy: float
    learning_rate: float


@dataclass(frozen=True)
class NotFinite:
    """The first step, counted over all epochs, whose loss or gradient was not finite, and what the loss was there."""

    step: int
    loss: float
    terms: dict[str, float]


class Ledger(Protocol):
    """Sums of an epoch, and a flag that is raised by the first step that is not finite and then stays."""

    def begin(self) -> None:
        """An epoch begins: the sums start anew."""

    def enter(
        self, step: int | Tensor, losses: Sequence[Tensor], gradients: list[Tensor], logits: Tensor, targets: Tensor
    ) -> bool:
        """Takes one step's total and terms and adds them up if all is finite; whether the optimiser may be called."""

    def add_up(self, over: Callable[[Tensor], Tensor]) -> None:
        """Makes the epoch's sums those of all processes; `over` adds a tensor up."""

    def not_finite(self) -> NotFinite | None:
        """The step that raised the flag."""

    def metrics(self, learning_rate: float) -> Metrics: ...

    def sums(self) -> list[float]:
        """What an epoch's steps have added up to, for a checkpoint within it."""

    def go_on(self, sums: list[float]) -> None:
        """The epoch goes on from there."""


class HostLedger:
    """For a CPU, where looking at a number costs nothing."""

    def __init__(self, terms: Sequence[str]) -> None:
        self.terms = tuple(terms)
        self._found: NotFinite | None = None
        self._sums, self._pictures = [0.0] * (len(terms) + 2), 0
        self._flag, self._one = torch.zeros(()), torch.ones(())

    def begin(self) -> None:
        self._sums, self._pictures = [0.0] * len(self._sums), 0

    def enter(
        self, step: int | Tensor, losses: Sequence[Tensor], gradients: list[Tensor], logits: Tensor, targets: Tensor
    ) -> bool:
        values = [loss.item() for loss in losses]
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, self._flag, self._one)
        if self._flag.item() or not math.isfinite(values[0]):
            self._found = self._found or _found(int(step), self.terms, values)
        if self._found is not None:
            return False
        right = _right(logits, targets).item()
        n = len(targets)
        self._sums = [total + value for total, value in zip(self._sums, [*(v * n for v in values), right], strict=True)]
        self._pictures += n
        return True

    def add_up(self, over: Callable[[Tensor], Tensor]) -> None:
        *self._sums, pictures = over(torch.tensor([*self._sums, self._pictures], dtype=torch.float64)).tolist()
        self._pictures = round(pictures)

    def not_finite(self) -> NotFinite | None:
        return self._found

    def metrics(self, learning_rate: float) -> Metrics:
        return _metrics(self.terms, self.sums(), learning_rate)

    def sums(self) -> list[float]:
        return [*self._sums, self._pictures]

    def go_on(self, sums: list[float]) -> None:
        *self._sums, pictures = sums
        self._pictures = int(pictures)


class DeviceLedger:
    """Everything stays on the device, so that no step waits for the host.

    `flag` is what a fused optimiser takes as `found_inf`: with the flag up it leaves weights and moments alone, so the
    weights stay those of the last good step, whenever the host comes to look. For an optimiser that does not take it,
    `looks`: the host then waits for every step.
    """

    def __init__(self, terms: Sequence[str], device: torch.device, looks: bool = False) -> None:
        self.terms, self.looks = tuple(terms), looks
        self.flag = torch.zeros((), device=device)
        self._one = torch.ones((), device=device)
        self._step = torch.full((), -1, dtype=torch.int64, device=device)
        self._values = torch.zeros(len(terms) + 1, device=device)
        # Each loss times the batch's pictures, then the right ones, then the pictures.
        self._sums = torch.zeros(len(terms) + 3, dtype=torch.float64, device=device)
        self._compiled: Callable[..., None] | None = None
        self._shape: torch.Size | None = None

    def tune(self, compiled: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
        """Some thirty small kernels a step become a few; not for an odd batch, compiled for itself."""
        self._compiled = compiled(_added)

    def begin(self) -> None:
        self._sums.zero_()

    def enter(
        self, step: int | Tensor, losses: Sequence[Tensor], gradients: list[Tensor], logits: Tensor, targets: Tensor
    ) -> bool:
        before = self.flag.clone()
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, self.flag, self._one)
        if not isinstance(step, Tensor):  # a compiled function would be made anew for every number
            step = torch.full((), step, dtype=torch.int64, device=self.flag.device)
        held = before, self.flag, self._step, self._values, self._sums
        self._shape = self._shape or logits.shape
        add = self._compiled if self._compiled is not None and logits.shape == self._shape else _added
        add([loss.detach() for loss in losses], logits.detach(), targets, step, *held)
        return not (self.looks and self.flag.item())

    def add_up(self, over: Callable[[Tensor], Tensor]) -> None:
        over(self._sums)

    def not_finite(self) -> NotFinite | None:
        return _found(int(self._step.item()), self.terms, self._values.tolist()) if self.flag.item() else None

    def metrics(self, learning_rate: float) -> Metrics:
        return _metrics(self.terms, self.sums(), learning_rate)

    def sums(self) -> list[float]:
        found: list[float] = self._sums.tolist()
        return found

    def go_on(self, sums: list[float]) -> None:
        self._sums.copy_(torch.tensor(sums, dtype=torch.float64))


def _added(
    losses: list[Tensor],
    logits: Tensor,
    targets: Tensor,
    step: Tensor,
    before: Tensor,
    flag: Tensor,
    first_step: Tensor,
    first_values: Tensor,
    sums: Tensor,
) -> None:
    """One step's part in `flag`, in the first step that raised it, and in `sums`, all of which it changes."""
    values = torch.stack([loss.float() for loss in losses])
    flag.logical_or_(~values[0].isfinite())
    first = flag > before
    first_step.copy_(torch.where(first, step, first_step))
    first_values.copy_(torch.where(first, values, first_values))
    right = _right(logits, targets)
    n = len(targets)
    added = torch.cat([values.double() * n, torch.stack([right, torch.full_like(right, n)])])
    sums += torch.where(flag == 0, added, 0.0)


def _right(logits: Tensor, targets: Tensor) -> Tensor:
    """How many of a batch are right, in float64; of soft targets the largest counts, and pictures without a label are
    taken to be right as often as the others."""
    known = rows_with_label(targets) if targets.is_floating_point() else targets >= 0
    labels = targets.argmax(-1) if targets.is_floating_point() else targets
    right = (known & (logits.detach().argmax(-1) == labels)).sum(dtype=torch.float64)
    return right * len(labels) / known.sum().clamp(min=1)


def _found(step: int, terms: Sequence[str], values: Sequence[float]) -> NotFinite:
    return NotFinite(step, values[0], dict(zip(terms, values[1:], strict=True)))


def _metrics(terms: Sequence[str], sums: Sequence[float], learning_rate: float) -> Metrics:
    loss, *each, right, pictures = sums
    means = {name: value / pictures for name, value in zip(terms, each, strict=True)}
    return Metrics(loss / pictures, means, right / pictures, learning_rate)
