"""Weights as people have them: safetensors, a folder packed for the hub, or a file that `torch.save` wrote."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from plackett.data.sight import Sight
from plackett.errors import InputError

PACKED, OURS = "model.safetensors", "plackett"
# Where trainers put the weights inside a checkpoint; a running average comes before what it is the average of.
NESTED = (
    "state_dict_ema", "model_ema", "ema_state_dict", "ema", "state_dict", "model_state_dict", "model", "network", "net",
    "module", "weights", "params",
)  # fmt: skip


@dataclass(frozen=True)
class Held:
    """The tensors of a file by name, classes and sight where it says them, and what was noticed."""

    path: Path
    tensors: dict[str, Tensor]
    class_names: tuple[str, ...] | None = None
    sight: Sight | None = None
    notes: tuple[str, ...] = ()


def read(path: str | Path, *, trust: bool = False) -> Held:
    """The weights in a .safetensors file, a folder that holds model.safetensors, or a .pth/.pt/.bin/.ckpt file.

    Args:
        path: the file, or the folder.
        trust: also load a pickled file, which may run whatever code whoever made it put there.
    """
    path = Path(path)
    try:
        if path.is_dir():
            return _folder(path)
        if not path.exists():
            raise InputError(f"There is no file of weights {path}.")
        if path.suffix == ".safetensors":
            return Held(path, _safetensors(path))
        return _nested(path, _pickled(path, trust))
    except OSError as error:
        raise InputError(f"The weights {path} cannot be read ({error.strerror or error}).") from error


def _folder(path: Path) -> Held:
    file, config = path / PACKED, path / "config.json"
    if not file.exists():
        raise InputError(f"{path} is a folder without {PACKED}; name a file of weights.")
    if not config.exists():
        return Held(path, _safetensors(file))
    try:
        said = json.loads(config.read_text(encoding="utf-8"))
        ours = said.get(OURS, {})
        names = ours.get("classes") or said.get("label_names") or said.get("pretrained_cfg", {}).get("label_names")
        sight = Sight.from_dict(ours["sight"]) if "sight" in ours else None
    except (ValueError, AttributeError, TypeError, KeyError) as error:
        raise InputError(f"{config} is not the JSON that describes a network ({error}).") from error
    return Held(path, _safetensors(file), tuple(map(str, names)) if names else None, sight)


def _safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except SafetensorError as error:
        raise InputError(
            f"{path} cannot be read as safetensors ({error}): it is damaged or was cut short, so get it again."
        ) from error


def _pickled(path: Path, trust: bool) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if not trust and _is_pickle(path):
            raise InputError(
                f"{path} is pickled with more in it than tensors, and reading it would run whatever code whoever made "
                "it put there: pass --trust-checkpoint if you trust them, or save its state_dict as safetensors."
            ) from error
    except (RuntimeError, EOFError, ValueError, KeyError) as error:
        raise _damaged(path, error) from error
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:  # whatever code it runs may fail in any way
        raise _damaged(path, error) from error


def _is_pickle(path: Path) -> bool:
    """A zip archive of torch's, or the pickle protocol's first byte."""
    with path.open("rb") as file:
        return file.read(2) in (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def _damaged(path: Path, error: Exception) -> InputError:
    reason = (str(error).splitlines() or [""])[0].rstrip(".") or type(error).__name__
    return InputError(f"{path} cannot be read as a file of weights ({reason}): it is damaged or was cut short.")


def _nested(path: Path, found: Any) -> Held:
    """The mapping from names to tensors, wherever in the checkpoint it stands."""
    at: list[str] = []
    notes: list[str] = []
    while not _is_state(found):
        if isinstance(found, nn.Module):
            found = found.state_dict()
            continue
        keys = [key for key in NESTED if isinstance(found, Mapping) and isinstance(found.get(key), Mapping | nn.Module)]
        if not keys:
            inside = ", ".join(map(str, list(found)[:8])) if isinstance(found, Mapping) else type(found).__name__
            raise InputError(
                f"{path} holds no weights where they are looked for (inside: {inside}); save the network's "
                "state_dict() as a file of its own."
            )
        at.append(keys[0])
        if len(keys) > 1:
            notes.append(f"{path} holds {' and '.join(keys)}; {keys[0]} was taken.")
        found = found[keys[0]]
    if at and not notes:
        notes.append(f"The weights stand under {'.'.join(at)} in {path}.")
    tensors = {str(name): tensor for name, tensor in found.items() if isinstance(tensor, Tensor)}
    return Held(path, tensors, notes=tuple(notes))


def _is_state(found: Any) -> bool:
    return isinstance(found, Mapping) and bool(found) and any(isinstance(value, Tensor) for value in found.values())
