"""One member of a cohort: a network, its objective, its optimiser and random numbers of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from plackett.data import Batch, derive
from plackett.objectives import Objective
from plackett.teachers import Signals
from plackett.training.charge import Ways, charge
from plackett.training.ledger import DeviceLedger, HostLedger, Ledger, Metrics
from plackett.training.mode import Mode
from plackett.training.optimise import Recipe, Schedule
from plackett.training.spread import Spread
from plackett.training.stepping import Average, Stepping, parted


@dataclass
class Student:
    """A student's result depends on its own seed and on the cohort's stream of batches, never on its companions."""

    name: str
    model: nn.Module
    objective: Objective
    optimiser: Optimizer
    schedule: Schedule
    random_state: Tensor
    stopped: str | None = None
    stepping: Stepping = field(default_factory=Stepping)
    average: Average | None = field(init=False, default=None)
    ledger: Ledger = field(init=False)
    trained: list[nn.Parameter] = field(init=False)
    spread: Spread | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.trained = [p for group in self.optimiser.param_groups for p in group["params"]]
        terms = tuple(self.objective.losses)
        if self.stepping.average is not None:
            self.average = Average(self.model, self.stepping.average)
        if self.device.type == "cpu":
            self.ledger = HostLedger(terms)
        else:
            # Only a fused optimiser reads the flag by itself; for others the host must look, and waits.
            fused = bool(self.optimiser.defaults.get("fused"))
            self.ledger = on_device = DeviceLedger(terms, self.device, looks=not fused)
            if fused:
                self.optimiser.found_inf = on_device.flag  # type: ignore[attr-defined]

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
        stepping: Stepping | None = None,
    ) -> Student:
        """A student whose initial weights and later random numbers come from `seed` alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive(seed, "student"))
            model = build().to(device)
            state = torch.get_rng_state()
        objective = objective.to(device)
        optimiser = recipe.make(p for p in (*model.parameters(), *objective.parameters()) if p.requires_grad)
        schedule = recipe.schedule(steps_per_epoch)
        return cls(name, model, objective, optimiser, schedule, state, stepping=stepping or Stepping())

    @property
    def device(self) -> torch.device:
        return self.trained[0].device

    @property
    def uncompiled(self) -> Ways:
        return Ways(self.model, self.objective)

    def tune(self, mode: Mode) -> Ways:
        """Network, objective and ledger as `mode` wants them: compiled, a small kernel is launched for many."""
        if isinstance(self.ledger, DeviceLedger):
            self.ledger.tune(mode.compiled)
        return Ways(mode.compiled(self.model), mode.compiled(self.objective))

    @property
    def kept(self) -> nn.Module:
        """The network that is tested and saved: the running average of the weights, where there is one."""
        return self.model if self.average is None else self.average.model

    @property
    def taps(self) -> tuple[str, ...]:
        """What the objective reads of the network besides its logits."""
        if not self.objective.reads_features:
            return ()
        known: tuple[str, ...] = getattr(self.model, "taps", ())
        return self.objective.taps or tuple(
            tap for tap in known if tap.startswith("stage") and not tap.endswith("_pre")
        )

    def begin(self, epoch: int, done: int = 0) -> None:
        """An epoch begins, or goes on after `done` of its steps."""
        self.model.train()
        self.objective.set_epoch(epoch)
        if not done:
            self.ledger.begin()

    def rate(self, step: int) -> None:
        """Sets the learning rate of that step, counted over all epochs."""
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(self.schedule.at(step))
            else:
                group["lr"] = self.schedule.at(step)

    def step(
        self,
        batch: Batch,
        signals: Signals | None,
        step: int | Tensor,
        mode: Mode,
        ways: Ways | None = None,
    ) -> None:
        """One optimiser step, or none where the loss or a gradient is not finite; the ledger knows."""
        ways = ways or self.uncompiled
        take = self._gradients if self.stepping.parts == 1 else self._by_parts
        losses, gradients, logits = take(batch, signals, mode, ways)
        for parameter, gradient in zip(self.trained, gradients, strict=True):
            parameter.grad = gradient
        found = [parameter.grad for parameter in self.trained if parameter.grad is not None]
        if self.ledger.enter(step, losses, found, logits, batch.targets):
            if self.stepping.clip is not None:
                nn.utils.clip_grad_norm_(self.trained, self.stepping.clip)
            self.optimiser.step()
            if self.average is not None:
                self.average.update(self.model, step)

    def _by_parts(
        self, batch: Batch, signals: Signals | None, mode: Mode, ways: Ways
    ) -> tuple[list[Tensor], list[Tensor | None], Tensor]:
        losses: list[Tensor] = []
        gradients: list[Tensor | None] = [None] * len(self.trained)
        logits = []
        for part, said in parted(batch, signals, self.stepping.parts):
            share = len(part.targets) / len(batch.targets)
            values, slopes, seen = self._gradients(part, said, mode, ways)
            values = [value.detach() * share for value in values]
            losses = [a + b for a, b in zip(losses, values, strict=True)] if losses else values
            for i, slope in enumerate(slopes):
                if slope is not None:
                    before = gradients[i]
                    gradients[i] = slope * share if before is None else before.add_(slope, alpha=share)
            logits.append(seen.detach())
        return losses, gradients, torch.cat(logits)

    def _gradients(
        self, batch: Batch, signals: Signals | None, mode: Mode, ways: Ways
    ) -> tuple[list[Tensor], list[Tensor | None], Tensor]:
        """The total and every term, the gradient of every trained parameter, and the logits."""
        arguments = batch, signals, mode, ways.forward, self.taps
        if self.spread is not None:
            losses, gradients, logits = self.spread.gradients(self.trained, arguments)
        else:
            charged = charge(ways.objective, *arguments)
            leaves = self.trained if ways.leaves is None else ways.leaves
            gradients = list(torch.autograd.grad(charged.total, leaves, allow_unused=True))
            losses, logits = [charged.total, *charged.terms], charged.logits
        return losses, _as_their_own(gradients, self.trained), logits

    def metrics(self, steps: int) -> Metrics:
        """Of this epoch; `steps` is how many were taken in all."""
        return self.ledger.metrics(self.schedule.at(steps))

    def healthy(self) -> bool:
        return bool(torch.stack([torch.isfinite(p).all() for p in self.model.parameters()]).all())

    def state(self) -> dict[str, Any]:
        """Everything needed to go on from here; the schedule follows from the step."""
        return {
            "model": self.model.state_dict(),
            "objective": self.objective.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "random_state": self.random_state,
            "stopped": self.stopped,
            "ledger": self.ledger.sums(),
            **({} if self.average is None else {"average": self.average.model.state_dict()}),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        rates = [group["lr"] for group in self.optimiser.param_groups]
        self.model.load_state_dict(state["model"])
        self.objective.load_state_dict(state["objective"])
        self.optimiser.load_state_dict(state["optimiser"])
        for group, rate in zip(self.optimiser.param_groups, rates, strict=True):
            group["lr"] = rate  # the tensor that a graph reads, not a copy of its last value
        for parameter, held in self.optimiser.state.items():
            for name, value in held.items():
                if isinstance(value, Tensor) and value.shape == parameter.shape:
                    (held[name],) = _as_their_own([value], [parameter])
        if self.average is not None:
            self.average.model.load_state_dict(state["average"])
        self.random_state, self.stopped = state["random_state"], state["stopped"]
        if "ledger" in state:  # older checkpoints, all of whole epochs, have none
            self.ledger.go_on(state["ledger"])


def _as_their_own(tensors: Sequence[Tensor | None], parameters: Sequence[Tensor]) -> list[Tensor | None]:
    """With the parameters' strides, on which a fused optimiser insists, and their precision; all are copied at once."""
    found, new, old = list(tensors), [], []
    for i, (tensor, parameter) in enumerate(zip(tensors, parameters, strict=True)):
        if tensor is not None and (tensor.stride() != parameter.stride() or tensor.dtype != parameter.dtype):
            found[i] = own = torch.empty_like(parameter)
            new.append(own)
            old.append(tensor)
    if new:
        torch._foreach_copy_(new, old)
    return found
