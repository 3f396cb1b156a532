"""A trained network as a folder that says what it is: `model.safetensors` and `config.json`, nothing pickled.

config.json has the key `plackett`: the network's spec and options, the class names in order, how it sees a picture, the
SHA-256 of the weights, and what else is known about it. Other keys are for others (timm reads its own).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.files import replacing
from plackett.models.placed import CONFIG, WEIGHTS

__all__ = ["CONFIG", "FORMAT", "KEY", "WEIGHTS", "Packed", "load", "read", "save", "tensors"]
KEY, FORMAT = "plackett", "plackett model 1"


@dataclass(frozen=True)
class Packed:
    """A network, how to build it again, and how to feed it.

    Args:
        network: gives logits `[N, len(classes)]`.
        spec: what it is built from: `resnet20`, `timm:resnet18`, `package.module:function`.
        classes: the name of every logit, in order.
        sight: how it sees a picture.
        about: anything else that is known, as JSON has it: figures, teacher, run.
        options: what it was built with besides the number of classes, as JSON has it.
    """

    network: nn.Module
    spec: str
    classes: tuple[str, ...]
    sight: Sight
    about: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def save(folder: Path, packed: Packed, beside: Mapping[str, Any] | None = None) -> Path:
    """Writes the folder; what stood in it stays readable until the new weights are in their place.

    `beside` are further keys of config.json.
    """
    weights = to_bytes({k: v.detach().cpu().contiguous().clone() for k, v in packed.network.state_dict().items()})
    ours: dict[str, Any] = {
        "format": FORMAT,
        "spec": packed.spec,
        "options": packed.options,
        "classes": list(packed.classes),
        "sight": packed.sight.as_dict(),
        "sha256": hashlib.sha256(weights).hexdigest(),
        "about": packed.about,
    }
    config = {**(beside or {}), KEY: ours}
    before = _before(folder)
    if before is not None:  # whoever reads between the two replacements finds the config of the weights that are there
        _write(folder / CONFIG, _json({**config, KEY: {**ours, "before": before}}))
        _write(folder / WEIGHTS, weights)
    else:
        _write(folder / WEIGHTS, weights)
    _write(folder / CONFIG, _json(config))
    return folder


def load(folder: Path, *, trust: bool = False) -> Packed:
    """The network of the folder, in evaluation mode on the CPU.

    `trust` lets it import and call a factory of the user's own that the folder names.
    """
    ours, content = _matching(folder)
    spec, classes, sight = str(ours["spec"]), tuple(ours["classes"]), Sight.from_dict(ours["sight"])
    options, about = dict(ours["options"]), dict(ours["about"])
    network = _build(folder, spec, classes, sight, options, trust)
    _fill(network, content, folder / WEIGHTS, spec)
    return Packed(network.eval(), spec, classes, sight, about, options)


def runs_code(folder: Path) -> bool:
    """Whether `load` needs `trust` for it; not of a folder that plackett did not save."""
    try:
        return _own(str(read(folder)["spec"]))
    except InputError:
        return False


def tensors(folder: Path) -> dict[str, Tensor]:
    """The weights alone, which need no one to build the network."""
    return _matching(folder)[1]


def _matching(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What config.json says of the weights that are there, and these."""
    ours, weights = read(folder), folder / WEIGHTS
    try:
        content = weights.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{folder} has no {WEIGHTS}: a network's folder holds it beside {CONFIG}.") from None
    try:
        held = read_tensors(content)
    except SafetensorError as error:
        raise InputError(
            f"{weights} is truncated or damaged ({error}): copy it again, or export it again from its run."
        ) from error
    found, before = hashlib.sha256(content).hexdigest(), ours.get("before")
    if before is not None and found == before["sha256"]:
        return dict(before), held
    if found != ours["sha256"]:
        raise InputError(
            f"{weights} is not the file that {CONFIG} was written for (SHA-256 {found[:12]}, expected "
            f"{ours['sha256'][:12]}): copy both files again from the same place."
        )
    return ours, held


def read(folder: Path) -> dict[str, Any]:
    """What config.json says under `plackett`, checked for what `load` needs."""
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder} has no {CONFIG}: that is not the folder of a saved network.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    ours = config.get(KEY) if isinstance(config, dict) else None
    if not isinstance(ours, dict):
        raise InputError(f"{path} has no key {KEY!r}: it was not written by plackett.")
    if ours.get("format") != FORMAT:
        raise InputError(f"{path} says it is {ours.get('format')!r}, this plackett reads {FORMAT!r}.")
    if lacking := [key for key in ("spec", "options", "classes", "sight", "sha256", "about") if key not in ours]:
        raise InputError(f"{path} does not say {lacking[0]!r}: copy it again, or export it again from its run.")
    return ours


def _before(folder: Path) -> dict[str, Any] | None:
    try:
        ours = read(folder)
        (folder / WEIGHTS).stat()
    except (InputError, OSError):
        return None
    before = ours.pop("before", None)  # of a save that was stopped: which of the two are the weights that are there?
    if before is not None and hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest() == before["sha256"]:
        return dict(before)
    return ours


def _own(spec: str) -> bool:
    """Whether a factory of the user's own is named."""
    kind, colon, _ = spec.partition(":")
    return bool(colon) and kind not in ("timm", "torchvision")


def _build(
    folder: Path, spec: str, classes: tuple[str, ...], sight: Sight, options: Mapping[str, Any], trust: bool
) -> nn.Module:
    from plackett.models.named import named  # which reads folders such as these

    if _own(spec) and not trust:
        raise InputError(
            f"{folder} holds a network that {spec} builds, and loading it would import and run that code: pass "
            "--trust-checkpoint if you trust it."
        )
    try:
        with torch.random.fork_rng(devices=()):
            return named(spec, classes=classes, sight=sight, options=options).network
    except InputError as error:
        raise InputError(f"{folder} holds a network that cannot be built here. {error}") from error


def _fill(network: nn.Module, held: Mapping[str, Tensor], path: Path, spec: str) -> None:
    expected = network.state_dict()
    missing, unknown = expected.keys() - held.keys(), held.keys() - expected.keys()
    other = sorted(k for k in expected.keys() & held.keys() if expected[k].shape != held[k].shape)
    if missing or unknown or other:
        example = sorted(missing | unknown)[0] if missing or unknown else other[0]
        raise InputError(
            f"{path} does not fit {spec}: {len(missing)} tensors are missing, {len(unknown)} are not of it, "
            f"{len(other)} have another shape (such as {example}); another version of the network's code wrote it."
        )
    network.load_state_dict(dict(held))


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)
