"""Networks that a function of one's own makes."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.models.made import Made, Options, called, near, sight_of


def from_function(spec: str, classes: int | None, pretrained: bool, sight: Sight | None, options: Options) -> Made:
    module_name, _, path = spec.partition(":")
    make = _imported(spec, module_name, path)
    given = dict(options)
    takes = _parameter(make)
    if classes is not None and takes is not None:
        given.setdefault(takes, classes)
    if pretrained:
        if not _accepts(make, "pretrained"):
            raise InputError(f"{spec} takes no pretrained=True; name a file of weights instead of pretrained.")
        given["pretrained"] = True
    network = called(spec, lambda: make(**given))
    if not isinstance(network, nn.Module):
        raise InputError(f"{spec} gives {type(network).__name__}, not a torch.nn.Module.")
    notes: tuple[str, ...] = ()
    seen = sight
    if sight is None and (config := getattr(network, "pretrained_cfg", None) or getattr(network, "default_cfg", None)):
        seen, notes = sight_of(
            {"input_size": (3, 224, 224), "mean": Sight(1).mean, "std": Sight(1).std, **config}, spec
        )
    if seen is None:
        seen = Sight(224)
        notes = (
            f"Nothing says how {spec} sees a picture: 224 x 224 with ImageNet's usual normalisation is assumed; "
            "say it with a sight of its own if that is wrong.",
        )
    outputs = _outputs(network, spec, seen)
    if classes is not None and outputs != classes:
        raise InputError(
            f"{spec} gives {outputs} logits a picture, but the data has {classes} classes; let it take num_classes."
        )
    return Made(network, outputs, seen, None, not (pretrained and classes is None), notes)


def _imported(spec: str, module_name: str, path: str) -> Callable[..., Any]:
    sys.path.insert(0, os.getcwd())  # where a person's own file lies; a command does not look there by itself
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise InputError(f"{spec}: importing {module_name} failed, since {error.name} is not installed.") from error
        raise InputError(
            f"{spec}: there is no module {module_name!r} here or among the installed packages; networks are named "
            "timm:NAME, torchvision:NAME or package.module:function."
        ) from error
    finally:
        sys.path.remove(os.getcwd())
    for part in path.split("."):
        if not hasattr(found, part):
            mean = near(part, dir(found)).rstrip()
            raise InputError(
                f"{spec}: {getattr(found, '__name__', module_name)} has no {part!r}{f'; {mean}' if mean else '.'}"
            )
        found = getattr(found, part)
    if not callable(found):
        raise InputError(f"{spec} is {type(found).__name__}, not a function that makes a network.")
    made: Callable[..., Any] = found
    return made


def _parameter(make: Callable[..., Any]) -> str | None:
    """What the function calls its number of classes."""
    return next((name for name in ("num_classes", "classes", "n_classes") if _accepts(make, name)), None)


def _accepts(make: Callable[..., Any], name: str) -> bool:
    try:
        return name in inspect.signature(make).parameters
    except (TypeError, ValueError):
        return False


@torch.no_grad()
def _outputs(network: nn.Module, spec: str, sight: Sight) -> int:
    """As many as it gives for a black picture."""
    training = network.training
    try:
        said = network.eval()(torch.zeros(1, len(sight.mean), sight.size, sight.size))
    except Exception as error:  # the person's own code
        reason = (str(error).splitlines() or [""])[0].rstrip(".")
        raise InputError(
            f"{spec} cannot read a picture of {len(sight.mean)} x {sight.size} x {sight.size} "
            f"({type(error).__name__}: {reason}); say how it sees if that is wrong."
        ) from error
    finally:
        network.train(training)
    if not isinstance(said, torch.Tensor) or said.dim() != 2:
        shape = list(said.shape) if isinstance(said, torch.Tensor) else type(said).__name__
        raise InputError(f"{spec} gives {shape} for one picture, where a classifier gives logits [1, classes].")
    return said.shape[1]
