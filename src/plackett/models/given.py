"""The network that a person names: a folder that holds one, or a specification and its weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.models import packed as packs
from plackett.models.made import sight_of
from plackett.models.named import named
from plackett.models.packed import CONFIG, KEY, WEIGHTS, Packed


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
    if place.exists() or _is_path(name):
        if weights is not None:
            raise InputError(f"{name} is a folder with weights of its own; leave out --weights {weights}.")
        return _from_folder(_network_folder(place), classes, trust)
    found = named(name, weights=weights, trust=trust, classes=None if weights else classes)
    names = _names(found.outputs, found.class_names, classes)
    packed = Packed(found.network.eval(), found.spec, names, found.sight)
    return Given(packed, weights is not None and not found.fresh_head, found.notes)


def _from_folder(folder: Path, classes: Sequence[str] | None, trust: bool) -> Given:
    config = _config(folder / CONFIG)
    if KEY in config:
        return Given(packs.load(folder, trust=trust), True)
    if not isinstance(config.get("architecture"), str):
        raise InputError(
            f"{folder / CONFIG} names no architecture: it is neither plackett's nor timm's. Name the network and give "
            f"its weights: timm:NAME --weights {folder / WEIGHTS}."
        )
    seen = config.get("pretrained_cfg", config)
    labels = config.get("label_names") or seen.get("label_names")
    options = dict(config.get("model_args") or {})
    spec = f"timm:{config['architecture']}"
    sight, notes = sight_of({**_USUAL, **seen}, spec) if "input_size" in seen else (None, ())
    found = named(spec, weights=folder, sight=sight, options=options, trust=trust)
    names = _names(found.outputs, labels if isinstance(labels, list) else None, classes)
    about = {"folder": folder.name}
    return Given(Packed(found.network.eval(), spec, names, found.sight, about, options), True, (*notes, *found.notes))


_USUAL: dict[str, Any] = {"mean": Sight(1).mean, "std": Sight(1).std}


def _names(outputs: int, own: Sequence[str] | None, theirs: Sequence[str] | None) -> tuple[str, ...]:
    """The network's own names; else those of whoever asks, where there are as many; else numbers."""
    for names in (own, theirs):
        if names is not None and len(names) == outputs:
            return tuple(map(str, names))
    return tuple(map(str, range(outputs)))


def _network_folder(place: Path) -> Path:
    """`place`, or the one folder below it that holds a network."""
    if place.is_file():
        raise InputError(f"{place} is a file: name the network that its weights are of, and --weights {place}.")
    if not place.is_dir():
        raise InputError(
            f"There is no folder {place}: name a run, a folder with {CONFIG}, or a network such as timm:resnet18."
        )
    if (place / CONFIG).exists():
        return place
    below = sorted(path.parent for path in place.glob(f"*/{CONFIG}")) or sorted(
        path.parent for path in place.glob(f"*/*/{CONFIG}")
    )
    if len(below) == 1:
        return below[0]
    if below:
        raise InputError(f"{place} holds {len(below)} networks: name one of {', '.join(map(str, below[:8]))}.")
    raise InputError(
        f"{place} has no {CONFIG}, nor has a folder in it: name the folder of a trained network (a run's, or one "
        "packed for the hub), or a network such as timm:resnet18."
    )


def _config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    if not isinstance(config, dict):
        raise InputError(f"{path} is not the JSON that describes a network.")
    return config


def _is_path(name: str) -> bool:
    """What looks like a path though nothing is there; a network's name has a slash only behind a colon."""
    return ("/" in name and ":" not in name) or name.startswith((".", "~"))
