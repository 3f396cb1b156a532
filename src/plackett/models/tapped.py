"""Features of any network by name: stages, modules, and what the last layer reads.

    stage1 ... stage4   of a network of timm: the last feature of stride 4, 8, 16 and 32 (`stem`: of stride 2); of one
                        whose features are all of one size, as a vision transformer's, the ends of its quarters
    embedding           what the last linear layer reads
    layer2.1.conv1      the output of that module, for any torch.nn.Module
    stage2_pre          of this package's networks: their own taps

Features of timm's stages are `[N, C, H, W]`, also where the network itself arranges them as tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from plackett.errors import InputError, did_you_mean
from plackett.models.network import Network

STRIDES = {"stem": 2, "stage1": 4, "stage2": 8, "stage3": 16, "stage4": 32}
EMBEDDING = "embedding"


@dataclass
class _Basket:
    """What hooks put their finds into while somebody asks; it is copied along with the network."""

    wanted: tuple[str, ...] = ()
    found: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Plan:
    """By tap: the network's own tap, the place among timm's intermediates, or the module that a hook watches."""

    own: Mapping[str, str]
    stages: Mapping[str, int]
    watched: Mapping[str, str]
    basket: _Basket


class _Tapped(nn.Module):
    """Put before a network's own class, so that names of parameters, methods and attributes stay what they are."""

    taps: tuple[str, ...]
    _plan: _Plan

    def forward(self, inputs: Tensor, taps: Sequence[str] = ()) -> Any:
        if not taps:
            return super().forward(inputs)
        for tap in taps:
            if tap not in self.taps:
                raise InputError(f"{type(self).__name__} has no tap {tap!r}; {did_you_mean(tap, self.taps)}.")
        plan, basket = self._plan, self._plan.basket
        basket.wanted, basket.found = tuple(tap for tap in taps if tap in plan.watched), {}
        logits, features = self._answer(inputs, taps)
        features.update(basket.found)
        _unchanged(basket)
        basket.wanted, basket.found = (), {}
        if lacking := [tap for tap in taps if tap not in features]:
            place = plan.watched[lacking[0]]
            raise InputError(
                f"{type(self).__name__} has a module {place!r} but never calls it, only what is in it, so that it "
                f"gives no feature: name the last part of it, such as {self._last_of(place)!r}."
            )
        return logits, {tap: features[tap] for tap in taps}

    def _last_of(self, place: str) -> str:
        children = [name for name, _ in self.get_submodule(place).named_children()]
        return f"{place}.{children[-1]}" if children else place

    def _answer(self, inputs: Tensor, taps: Sequence[str]) -> tuple[Tensor, dict[str, Tensor]]:
        own = {tap: self._plan.own[tap] for tap in taps if tap in self._plan.own}
        stages = {tap: self._plan.stages[tap] for tap in taps if tap in self._plan.stages}
        if own:
            logits, said = super().forward(inputs, taps=tuple(own.values()))
            return logits, {tap: said[place] for tap, place in own.items()}
        if stages:
            places = sorted(set(stages.values()))
            network: Any = self
            last, found = network.forward_intermediates(inputs, indices=places)
            features = {tap: found[places.index(place)] for tap, place in stages.items()}
            return network.forward_head(last), features
        return super().forward(inputs), {}


def tapped(network: nn.Module, names: Mapping[str, str] | Sequence[str]) -> nn.Module:
    """The same network, which now also answers `network(x, taps=("stage2",)) -> (logits, {"stage2": tensor})`.

    Names and shapes of its parameters, its class and its methods stay; without `taps` it answers as before.

    Args:
        network: any classifier.
        names: the taps, each a place as listed above; or a mapping from the tap's name to its place.

    >>> network = tapped(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 4)), {"hidden": "1"})
    >>> logits, features = network(torch.ones(5, 2), taps=("hidden",))
    >>> logits.shape, features["hidden"].shape, list(network.state_dict())[:2]
    (torch.Size([5, 4]), torch.Size([5, 3]), ['0.weight', '0.bias'])
    """
    if isinstance(network, _Tapped):
        raise InputError(f"{type(network).__name__} is tapped already, at {', '.join(network.taps)}.")
    wanted = dict(names) if isinstance(names, Mapping) else {name: name for name in names}
    if not wanted:
        raise InputError("Name at least one feature to tap.")
    own: dict[str, str] = {}
    stages: dict[str, int] = {}
    watched: dict[str, str] = {}
    known = network.taps if isinstance(network, Network) else ()
    steps = _stages(network)
    modules = dict(network.named_modules())
    for tap, place in wanted.items():
        if place in known:
            own[tap] = place
        elif place in steps:
            stages[tap] = steps[place]
        elif place == EMBEDDING or (place and place in modules):
            watched[tap] = place
        else:
            shallow = [name for name in modules if name and name.count(".") < 2]
            raise InputError(
                f"{type(network).__name__} has no feature {place!r}; "
                f"{did_you_mean(place, dict.fromkeys([*known, *steps, EMBEDDING, *shallow]))}."
            )
    basket = _Basket()
    for tap, place in watched.items():
        if place == EMBEDDING:
            last_linear(network).register_forward_pre_hook(_Before(basket, tap))
        else:
            modules[place].register_forward_hook(_After(basket, tap))
    kind = type(network)
    network.__class__ = type(kind.__name__, (_Tapped, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})
    made: Any = network
    made._plan, made.taps = _Plan(own, stages, watched, basket), tuple(wanted)
    return network


@torch.no_grad()
def channels(network: nn.Module, taps: Sequence[str], size: int, planes: int = 3) -> dict[str, int]:
    """How many channels each feature has, seen on one black picture: what FitNet's and VID's projectors are made for.

    >>> from plackett import models
    >>> channels(models.create("resnet20", classes=10), ("stage2", "embedding"), 32)
    {'stage2': 32, 'embedding': 64}
    """
    device = next(network.parameters()).device
    training = network.training
    try:
        _, features = network.eval()(torch.zeros(1, planes, size, size, device=device), taps=tuple(taps))
    finally:
        network.train(training)
    return {tap: feature.shape[1] for tap, feature in features.items()}


def stages(network: nn.Module) -> tuple[str, ...]:
    """The stages that a network is known by, from the first to the last.

    >>> from plackett import models
    >>> stages(models.create("resnet20", classes=10)), stages(nn.Linear(2, 2))
    (('stage1', 'stage2', 'stage3'), ())
    """
    known = network.taps if isinstance(network, Network) else _stages(network)
    return tuple(tap for tap in known if tap.startswith("stage") and not tap.endswith("_pre"))


def last_linear(network: nn.Module) -> nn.Module:
    """The module that gives the logits: what timm calls the classifier, or else the last linear layer."""
    ask = getattr(network, "get_classifier", None)
    found = ask() if callable(ask) else None
    if isinstance(found, nn.Module) and not isinstance(found, nn.Identity):
        return found
    linear = [module for module in network.modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise InputError(f"{type(network).__name__} has no linear layer whose input could be its embedding.")
    return linear[-1]


class _After:
    """A forward hook. An object, not a closure, so that a copy of the network has a hook of its own."""

    def __init__(self, basket: _Basket, tap: str) -> None:
        self.basket, self.tap = basket, tap

    def __call__(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if self.tap in self.basket.wanted:
            _keep(self.basket, self.tap, output)


class _Before(_After):
    def __call__(self, module: nn.Module, inputs: Any, output: Any = None) -> None:
        if self.tap in self.basket.wanted:
            read = inputs[0]  # where the classifier is a 1x1 convolution, [N, C, 1, 1]
            _keep(self.basket, self.tap, read.flatten(1) if read.shape[2:] == (1, 1) else read)


def _keep(basket: _Basket, tap: str, found: Any) -> None:
    if not isinstance(found, Tensor):
        raise InputError(f"The feature {tap!r} is a {type(found).__name__}, not a tensor; tap a module inside it.")
    basket.found[tap] = found
    if not torch.compiler.is_compiling():
        basket.versions[tap] = found._version


def _unchanged(basket: _Basket) -> None:
    """An in-place ReLU behind the module would change what was tapped."""
    if torch.compiler.is_compiling():
        return
    for tap, found in basket.found.items():
        if found._version != basket.versions[tap]:
            raise InputError(f"The feature {tap!r} is changed in place by what follows it; tap the module after it.")


def _stages(network: nn.Module) -> dict[str, int]:
    """The places of `stem` and `stageN` among a timm network's intermediates."""
    listed = getattr(network, "feature_info", None)
    if not callable(getattr(network, "forward_intermediates", None)) or not listed:
        return {}
    strides = [entry["reduction"] for entry in listed]
    if len(set(strides)) == 1:
        n = len(strides)
        return {f"stage{quarter}": n * quarter // 4 - 1 for quarter in range(1, 5) if n * quarter // 4}
    last = {stride: place for place, stride in enumerate(strides)}
    return {name: last[stride] for name, stride in STRIDES.items() if stride in last}
