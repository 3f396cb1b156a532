"""Where a trained network lies: a folder of one's own, a run's that holds one, or one that anybody packed for timm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.models import registry
from plackett.models.made import sight_of

WEIGHTS, CONFIG = "model.safetensors", "config.json"


def placed(name: str) -> Path | None:
    """The folder that `name` means; None where it is the name of a network and not of a place."""
    place = Path(name).expanduser()
    if (place / CONFIG).is_file():
        return place
    if is_path(name) or (place.exists() and name not in registry.MODELS):
        return network_folder(place)
    return None


def network_folder(place: Path) -> Path:
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


def configured(folder: Path) -> dict[str, Any]:
    """What its config.json says, whoever wrote it."""
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    if not isinstance(config, dict):
        raise InputError(f"{path} is not the JSON that describes a network.")
    return config


class OfTimm(NamedTuple):
    """What a folder says that was packed for timm; `class_names` None where it does not say them."""

    spec: str
    sight: Sight | None
    options: dict[str, Any]
    class_names: tuple[str, ...] | None
    notes: tuple[str, ...]


def of_timm(folder: Path, config: dict[str, Any]) -> OfTimm:
    if not isinstance(config.get("architecture"), str):
        raise InputError(
            f"{folder / CONFIG} names no architecture: it is neither plackett's nor timm's. Name the network and give "
            f"its weights: timm:NAME --weights {folder / WEIGHTS}."
        )
    seen = config.get("pretrained_cfg", config)
    labels = config.get("label_names") or seen.get("label_names")
    spec = f"timm:{config['architecture']}"
    sight, notes = sight_of({**_USUAL, **seen}, spec) if "input_size" in seen else (None, ())
    names = tuple(map(str, labels)) if isinstance(labels, list) else None
    return OfTimm(spec, sight, dict(config.get("model_args") or {}), names, notes)


_USUAL: dict[str, Any] = {"mean": Sight(1).mean, "std": Sight(1).std}


def is_path(name: str) -> bool:
    """What looks like a path though nothing is there; a network's name has a slash only behind a colon."""
    return ("/" in name and ":" not in name) or name.startswith((".", "~"))
