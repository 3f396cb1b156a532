"""Networks of timm."""

from __future__ import annotations

import difflib
from typing import Any

from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.models.imagenet import wnids
from plackett.models.made import Made, Options, fetched, library, sight_of
from plackett.models.with_timm import register_with_timm


def from_timm(name: str, classes: int | None, pretrained: bool, sight: Sight | None, options: Options) -> Made:
    timm = library("timm", f"timm:{name}")
    register_with_timm()
    local = name.startswith(("hf-hub:", "hf_hub:", "local-dir:"))
    if not local:
        _known_to_timm(timm, name)
    given = dict(options)
    if classes is not None:
        given["num_classes"] = classes
    if sight is not None and not local and _of_fixed_size(timm, name):
        given.setdefault("img_size", sight.size)
    network = fetched(f"timm:{name}", pretrained, lambda: timm.create_model(name, pretrained=pretrained, **given))
    config = dict(getattr(network, "pretrained_cfg", None) or {})
    outputs = int(network.num_classes)
    if not outputs:
        raise InputError(f"timm:{name} gives features and no logits; it needs a head, or weights that have one.")
    kept = pretrained and outputs == config.get("num_classes")
    names = (config.get("label_names") or _imagenet_names(network)) if kept else None
    if names is not None and len(names) != outputs:
        names = None
    found, notes = sight_of(library("timm.data", f"timm:{name}").resolve_data_config({}, model=network), f"timm:{name}")
    return Made(network, outputs, found, tuple(map(str, names)) if names else None, not kept, notes)


def _known_to_timm(timm: Any, name: str) -> None:
    architecture, dot, tag = name.partition(".")
    if not timm.is_model(architecture):
        close = difflib.get_close_matches(architecture, timm.list_models(), n=3)
        mean = f"did you mean {close[0]!r}? " if close else ""
        others = f"(also near: {', '.join(close[1:])})" if len(close) > 1 else "See timm.list_models()."
        raise InputError(f"timm {timm.__version__} has no network {architecture!r}; {mean}{others}")
    tags = [found.partition(".")[2] for found in timm.list_pretrained(f"{architecture}.*")]
    if dot and tag not in tags:
        known = ", ".join(filter(None, tags)) or "none"
        raise InputError(f"timm:{architecture} has no weights called {tag!r} (choices: {known}).")


def _of_fixed_size(timm: Any, name: str) -> bool:
    config = timm.get_pretrained_cfg(name, allow_unregistered=True)
    return bool(config is not None and config.fixed_input_size)


def _imagenet_names(network: Any) -> tuple[str, ...] | None:
    """The wnids of the ImageNet subset that these weights of timm's were trained on."""
    subset = library("timm.data", "ImageNet's class names").infer_imagenet_subset(network)
    return wnids(subset) if subset else None
