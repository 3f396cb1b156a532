"""One member of a cohort: a network, its objective, its optimiser and random numbers of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from plackett.data import Batch, derive
from plackett.objectives import Objective
from plackett.teachers import Signals
from plackett.training.optimise import Recipe


@dataclass(frozen=True)
class Metrics:
    """Means over one epoch's training batches; `terms` are unweighted."""

    loss: float
    terms: dict[str, float]
    accuracy: float
    learning_rate: float


@dataclass
class Student:
    """A student's result depends on its own seed and on the cohort's stream of batches, never on its companions."""

    name: str
    model: nn.Module
    objective: Objective
    optimiser: Optimizer
    scheduler: LRScheduler | None
    random_state: Tensor
    stopped: str | None = None
    _sums: dict[str, Tensor] = field(default_factory=dict)
    _pictures: int = 0

    @classmethod
    def make(
        cls,
        name: str,
        build: Callable[[], nn.Module],
        objective: Objective,
        recipe: Recipe,
        *,
        steps_per_epoch: int,
        seed: int,
        device: torch.device | str = "cpu",
    ) -> Student:
        """A student whose initial weights and later random numbers come from `seed` alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive(seed, "student"))
            model = build().to(device)
            state = torch.get_rng_state()
        optimiser = recipe.optimiser([*model.parameters(), *objective.parameters()])
        scheduler = recipe.scheduler(optimiser, steps_per_epoch)
        return cls(name, model, objective.to(device), optimiser, scheduler, state)

    def begin(self, epoch: int) -> None:
        self.model.train()
        self.objective.set_epoch(epoch)
        self._sums, self._pictures = {}, 0

    def step(self, batch: Batch, signals: Signals | None) -> dict[str, Tensor] | None:
        """One optimiser step; where the loss is not finite no step is made and the terms are returned to say why."""
        logits = self.model(batch.inputs)
        teacher = None if signals is None else signals.logits
        outcome = self.objective(logits, teacher, batch.targets)
        if not torch.isfinite(outcome.total):
            return {"loss": outcome.total.detach(), **outcome.terms}
        self.optimiser.zero_grad(set_to_none=True)
        outcome.total.backward()
        self.optimiser.step()
        if self.scheduler is not None:
            self.scheduler.step()
        n = len(batch.targets)
        self._add("loss", outcome.total.detach() * n)
        for term, value in outcome.terms.items():
            self._add(f"term {term}", value * n)
        self._add("right", (logits.detach().argmax(-1) == batch.targets).sum())
        self._pictures += n
        return None

    def metrics(self) -> Metrics:
        mean = {name: total.item() / self._pictures for name, total in self._sums.items()}
        terms = {name.removeprefix("term "): value for name, value in mean.items() if name.startswith("term ")}
        return Metrics(mean["loss"], terms, mean["right"], self.optimiser.param_groups[0]["lr"])

    def healthy(self) -> bool:
        return all(bool(torch.isfinite(p).all()) for p in self.model.parameters())

    def _add(self, name: str, value: Tensor) -> None:
        self._sums[name] = self._sums[name] + value if name in self._sums else value
