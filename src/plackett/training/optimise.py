"""How a student is optimised: the numbers of a recipe, and the optimiser and schedule made from them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from plackett.errors import InputError, missing_extra

OWN = "adamw"
USUAL = ("adabelief", "adamw", "adan", "lamb", "lion", "nadamw", "rmsprop", "sgd")


@dataclass(frozen=True)
class Schedule:
    """A line up to `peak` over `warmup` steps, then a cosine to 0 at `steps`.

    A function of the step, so there is nothing to save or to replay.

    >>> [round(Schedule(1.0, 4).at(step), 3) for step in range(6)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    >>> [round(Schedule(1.0, 6, warmup=2).at(step), 3) for step in range(7)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0]
    """

    peak: float
    steps: int
    warmup: int = 0

    def at(self, step: int) -> float:
        if step < self.warmup:
            return self.peak * (step + 1) / self.warmup
        done, whole = step - self.warmup, max(1, self.steps - self.warmup)
        return self.peak * (0.5 * (1 + math.cos(math.pi * min(done, whole) / whole)))

    def table(self, device: torch.device) -> Tensor:
        """Every step's rate, for a graph that looks its own step up; the last one goes on for ever."""
        return torch.tensor([self.at(step) for step in range(self.steps + 1)], dtype=torch.float32, device=device)


@dataclass(frozen=True)
class Recipe:
    """An optimiser with a cosine schedule from `learning_rate` to 0, stepped once a batch.

    Args:
        epochs: how often every picture is seen.
        batch_size: pictures a step.
        learning_rate: the highest.
        weight_decay: of all weights, or of those with more than one dimension (see `decay_all`).
        optimiser: "adamw", or the name of another of timm's: "sgd", "lamb", "adan", "adabelief" ...
        options: of that optimiser, such as `{"momentum": 0.9}`.
        warmup_epochs: for so long the rate grows to its highest, in a line.
        decay_all: whether norms and biases decay too; where False they do not.

    >>> Recipe(30, 64, optimiser="lamp")
    Traceback (most recent call last):
    plackett.errors.InputError: There is no optimiser 'lamp'; did you mean 'lamb'? (timm has ..., and others).
    """

    epochs: int
    batch_size: int
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    optimiser: str = OWN
    options: Mapping[str, Any] = field(default_factory=dict)
    warmup_epochs: float = 0.0
    decay_all: bool = True

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise InputError(f"A recipe's {name} must be at least 1, not {getattr(self, name)}.")
        if not 0 < self.learning_rate < math.inf:
            raise InputError(f"A recipe's learning_rate must be above 0 and finite, not {self.learning_rate:g}.")
        if not 0 <= self.warmup_epochs < self.epochs:
            raise InputError(
                f"A recipe's warmup_epochs must be at least 0 and below its {self.epochs} epochs, "
                f"not {self.warmup_epochs:g}."
            )
        if self.optimiser != OWN and self.optimiser not in (known := _timm().list_optimizers()):
            raise InputError(f"There is no optimiser {self.optimiser!r}; {_suggested(self.optimiser, known)}.")

    def make(self, parameters: Iterable[nn.Parameter]) -> Optimizer:
        trained = list(parameters)
        device, groups = trained[0].device, self._groups(trained)
        try:
            if self.optimiser != OWN:
                return self._of_timm(groups)
            if device.type == "cpu":
                return AdamW(groups, lr=self.learning_rate, weight_decay=self.weight_decay, fused=True, **self.options)
            # A rate that lives on the device reaches a captured graph, which would otherwise keep the first one.
            rate = torch.tensor(self.learning_rate, device=device)
            return AdamW(groups, lr=rate, weight_decay=self.weight_decay, fused=True, capturable=True, **self.options)
        except (TypeError, ValueError, AssertionError, KeyError) as error:
            said = " ".join(str(error).split())
            given = dict(self.options)
            raise InputError(f"The optimiser {self.optimiser!r} cannot be made with {given}: {said}.") from error

    def _groups(self, trained: list[nn.Parameter]) -> Any:
        if self.decay_all or not self.weight_decay:
            return trained
        decaying: dict[str, Any] = {"params": [p for p in trained if p.dim() > 1]}
        spared: dict[str, Any] = {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0}
        return [group for group in (decaying, spared) if group["params"]]

    def _of_timm(self, groups: Any) -> Optimizer:
        made: Optimizer = _timm().create_optimizer_v2(
            groups, opt=self.optimiser, lr=self.learning_rate, weight_decay=self.weight_decay, **self.options
        )
        return made

    def schedule(self, steps_per_epoch: int) -> Schedule:
        return Schedule(self.learning_rate, self.epochs * steps_per_epoch, round(self.warmup_epochs * steps_per_epoch))

    def as_dict(self) -> dict[str, Any]:
        """What a run's record says; what is at its default is left out, as in older runs, which had no such option."""
        held, usual = asdict(self), Recipe(self.epochs, self.batch_size)
        for name in ("options", "warmup_epochs", "decay_all"):
            if held[name] == getattr(usual, name):
                held.pop(name)
        named = "AdamW" if self.optimiser == OWN else self.optimiser
        return {"schedule": "cosine", **held, "optimiser": named}


def _suggested(name: str, known: Iterable[str]) -> str:
    """As `did_you_mean`, of so many names that only the usual ones are listed."""
    close = difflib.get_close_matches(name, known, n=1)
    listing = f"timm has {', '.join(USUAL)}, and others"
    return f"did you mean {close[0]!r}? ({listing})" if close else listing


def _timm() -> Any:
    try:
        import timm.optim
    except ImportError as error:
        raise missing_extra("timm", "vision", "An optimiser other than 'adamw'") from error
    return timm.optim
