"""The network that a person names: a folder that holds one, or a specification and its weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from plackett.errors import InputError
from plackett.models import packed as packs
from plackett.models.named import named
from plackett.models.packed import KEY, Packed
from plackett.models.placed import configured, is_path, network_folder, of_timm


class Given(NamedTuple):
    """`trained` is False where the weights are drawn at random; `notes` are sentences on what was done on the way."""

    packed: Packed
    trained: bool
    notes: tuple[str, ...] = ()


def given(
    name: str,
    *,
    weights: str | None = None,
    classes: Sequence[str] | None = None,
    trust: bool = False,
) -> Given:
    """What `name` names, in evaluation mode on the CPU.

    Args:
        name: a folder with config.json and model.safetensors (of a run, or packed for the hub by anybody), a folder
            with exactly one such folder below it, or a specification such as `timm:resnet18`.
        weights: for a specification: "pretrained", or a file.
        classes: the names of the classes, where the weights do not say them: as many as the network has logits.
        trust: also read pickled weights, and call a factory that a folder names.
    """
    place = Path(name)
    if place.exists() or is_path(name):
        if weights is not None:
            raise InputError(f"{name} is a folder with weights of its own; leave out --weights {weights}.")
        return _from_folder(network_folder(place), classes, trust)
    found = named(name, weights=weights, trust=trust, classes=None if weights else classes)
    names = _names(found.outputs, found.class_names, classes)
    packed = Packed(found.network.eval(), found.spec, names, found.sight)
    return Given(packed, weights is not None and not found.fresh_head, found.notes)


def _from_folder(folder: Path, classes: Sequence[str] | None, trust: bool) -> Given:
    config = configured(folder)
    if KEY in config:
        return Given(packs.load(folder, trust=trust), True)
    told = of_timm(folder, config)
    found = named(told.spec, weights=folder, sight=told.sight, options=told.options, trust=trust)
    names = _names(found.outputs, told.class_names, classes)
    packed = Packed(found.network.eval(), told.spec, names, found.sight, {"folder": folder.name}, told.options)
    return Given(packed, True, (*told.notes, *found.notes))


def _names(outputs: int, own: Sequence[str] | None, theirs: Sequence[str] | None) -> tuple[str, ...]:
    """The network's own names; else those of whoever asks, where there are as many; else numbers."""
    for names in (own, theirs):
        if names is not None and len(names) == outputs:
            return tuple(map(str, names))
    return tuple(map(str, range(outputs)))
