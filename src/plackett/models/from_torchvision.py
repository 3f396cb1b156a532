"""Classifiers of torchvision."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from torch import nn

from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.models import fitting
from plackett.models.imagenet import wnids
from plackett.models.made import Made, Options, called, fetched, library, near
from plackett.models.weights import Held


def from_torchvision(name: str, classes: int | None, pretrained: bool, sight: Sight | None, options: Options) -> Made:
    models = library("torchvision.models", f"torchvision:{name}")
    known = models.list_models(module=models)
    if name.lower() not in known:
        raise InputError(f"torchvision has no classifier {name!r}; {near(name, known)}(choices: {', '.join(known)})")
    weights = models.get_model_weights(name).DEFAULT
    outputs = len(weights.meta["categories"]) if classes is None else classes
    given = {"num_classes": outputs, **options}
    if name.lower() in ("googlenet", "inception_v3"):
        given = {"aux_logits": False, "init_weights": True, **given}
    network = called(f"torchvision:{name}", lambda: models.get_model(name, weights=None, **given))
    names, fresh = None, True
    notes: tuple[str, ...] = ()
    if pretrained:
        notes = _downloaded(network, weights, f"torchvision:{name}", outputs)
        fresh = outputs != len(weights.meta["categories"])
        names = None if fresh else _names(weights.meta["categories"])
    return Made(network, outputs, _sight_of_torchvision(weights.transforms()), names, fresh, notes)


def _downloaded(network: nn.Module, weights: Any, spec: str, outputs: int) -> tuple[str, ...]:
    tensors = fetched(spec, True, lambda: weights.get_state_dict(progress=False, check_hash=True))
    held = Held(Path(str(weights)), {k: t for k, t in tensors.items() if not k.startswith(("aux", "AuxLogits"))})
    found = fitting.fit(network, held)
    head = found.head(outputs)
    if head is None:
        fitting.check(found, spec, weights)
    fitting.load(network, found, without=found.reshaped)
    return () if head is None else (f"The head of {weights} has {head} classes; a fresh one has {outputs}.",)


def _sight_of_torchvision(transforms: Any) -> Sight:
    size, resized = transforms.crop_size[0], transforms.resize_size[0]
    way = transforms.interpolation.value
    share = size / resized
    while math.floor(size / share) > resized:  # a rounding of the division must not add or take a pixel
        share = math.nextafter(share, 2)
    while math.floor(size / share) < resized:
        share = math.nextafter(share, 0)
    return Sight(size, tuple(transforms.mean), tuple(transforms.std), share, way)


def _names(categories: list[str]) -> tuple[str, ...]:
    """ImageNet's classes under the names that folders of it have."""
    return wnids("imagenet-1k") if len(categories) == 1000 else tuple(categories)
