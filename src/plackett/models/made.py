"""What every maker of networks gives, and how its failures are told."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from torch import nn

from plackett.data.sight import Interpolation, Sight
from plackett.errors import InputError, PlackettError, missing_extra

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Made:
    """A network, how many logits it gives, and where it is known how it sees and what the logits stand for.

    `fresh_head`: its last layer was drawn at random, whatever the rest was.
    """

    network: nn.Module
    outputs: int
    sight: Sight | None = None
    class_names: tuple[str, ...] | None = None
    fresh_head: bool = True
    notes: tuple[str, ...] = ()


Maker = Callable[[str, int | None, bool, Sight | None, Options], Made]


def sight_of(config: Mapping[str, Any], spec: str) -> tuple[Sight, tuple[str, ...]]:
    notes = []
    height, width = config["input_size"][-2:]
    if height != width:
        notes.append(f"{spec} was trained on pictures of {height} x {width}; it is shown squares of {height}.")
    way = config.get("interpolation", "bicubic")
    if way not in get_args(Interpolation):
        notes.append(f"{spec} was trained with {way!r} resizing; bicubic stands in for it.")
        way = "bicubic"
    if config.get("crop_mode", "center") != "center":
        notes.append(f"{spec} was tested with crop mode {config['crop_mode']!r}; the middle is taken instead.")
    sight = Sight(height, tuple(config["mean"]), tuple(config["std"]), float(config.get("crop_pct") or 0.875), way)
    return sight, tuple(notes)


def called(spec: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except PlackettError:
        raise
    except Exception as error:  # a library's or a person's own code
        reason = (str(error).splitlines() or [""])[0].rstrip(".")
        raise InputError(f"{spec} could not be made ({type(error).__name__}: {reason}).") from error


def fetched(spec: str, pretrained: bool, make: Callable[[], Any]) -> Any:
    if not pretrained:
        return called(spec, make)
    try:
        return make()
    except (TypeError, AssertionError) as error:
        raise InputError(f"{spec} could not be made ({type(error).__name__}: {error}).") from error
    except Exception as error:  # what a hub's client raises without a network is a matter of its version
        reason = (str(error).splitlines() or [""])[0].rstrip(".")
        raise InputError(
            f"The pretrained weights of {spec} could not be fetched ({type(error).__name__}: {reason}); where there is "
            "no network, name a file of weights."
        ) from error


def near(word: str, choices: Iterable[str]) -> str:
    """The closest of many names as a question, or nothing.

    >>> near("resnet19", ["resnet18", "vgg"])
    "did you mean 'resnet18'? "
    """
    close = difflib.get_close_matches(word, list(choices), n=1)
    return f"did you mean {close[0]!r}? " if close else ""


def library(module: str, what: str) -> Any:
    """An optional library's module, or the sentence that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_extra(module.partition(".")[0], "vision", what) from error
