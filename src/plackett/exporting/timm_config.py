"""config.json as timm reads it."""

from __future__ import annotations

from typing import Any

from torch import nn

from plackett.models.packed import Packed
from plackett.models.with_timm import NETWORKS

# What timm knows of a network besides how it sees: where its head is, and whether its size is fixed.
_KEPT = ("classifier", "first_conv", "pool_size", "fixed_input_size", "min_input_size")


def architecture(packed: Packed) -> str | None:
    """The name under which timm builds it; None where timm cannot.

    >>> from plackett.data.sight import Sight
    >>> from plackett.models import create
    >>> architecture(Packed(create("resnet20", classes=2), "resnet20", ("cat", "dog"), Sight(32)))
    'plackett_resnet20'
    """
    kind, colon, name = packed.spec.partition(":")
    if not colon:
        return f"plackett_{packed.spec}" if packed.spec in NETWORKS else None
    if kind != "timm":
        return None
    return str(_known(packed.network).get("architecture") or name.rpartition(":")[2].partition(".")[0])


def timm_config(packed: Packed) -> dict[str, Any]:
    """The keys that timm reads; none where timm cannot build the network."""
    name = architecture(packed)
    if name is None:
        return {}
    sight, known = packed.sight, _known(packed.network)
    seen = {
        "input_size": [len(sight.mean), sight.size, sight.size],
        "mean": list(sight.mean),
        "std": list(sight.std),
        "crop_pct": sight.crop,
        "crop_mode": "center",
        "interpolation": sight.interpolation,
        "num_classes": len(packed.classes),
        "custom_load": False,
    }
    config: dict[str, Any] = {
        "architecture": name,
        "num_classes": len(packed.classes),
        "label_names": list(packed.classes),
        "pretrained_cfg": {**{key: known[key] for key in _KEPT if known.get(key) is not None}, **seen},
    }
    if width := getattr(packed.network, "num_features", None):
        config["num_features"] = width
    arguments = dict(packed.options)
    if known.get("fixed_input_size"):
        arguments.setdefault("img_size", sight.size)
    if arguments:
        config["model_args"] = arguments
    return config


def _known(network: nn.Module) -> dict[str, Any]:
    return dict(getattr(network, "pretrained_cfg", None) or {})
