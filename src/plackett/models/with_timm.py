"""The networks under timm's register, where timm is installed: `timm.create_model("plackett_resnet20", ...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from plackett.errors import InputError, missing_extra
from plackett.models.registry import MODELS

NETWORKS = (
    "mobilenetv2_cifar", "resnet20", "resnet32x4", "resnet50_cifar", "resnet56", "resnet8x4", "wrn_40_1", "wrn_40_2",
)  # fmt: skip
MEAN, STD = (0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)


def register_with_timm() -> tuple[str, ...]:
    """Registers each network as `plackett_<name>` with timm, once, and says under which names."""
    try:
        from timm.models import is_model, register_model
    except ImportError as error:
        raise missing_extra("timm", "vision", "plackett.models.register_with_timm()") from error
    for name in NETWORKS:
        if not is_model(f"plackett_{name}"):
            register_model(_entry(name))
    return tuple(f"plackett_{name}" for name in NETWORKS)


def _entry(name: str) -> Callable[..., nn.Module]:
    def entry(
        pretrained: bool = False,
        num_classes: int | None = None,
        in_chans: int = 3,
        pretrained_cfg: Any = None,
        **given: Any,
    ) -> nn.Module:
        packed = _of_a_folder(pretrained_cfg)
        if pretrained and packed is None:
            raise InputError(f"plackett_{name} has no weights to download; pass pretrained=False and load your own.")
        if in_chans != 3:
            raise InputError(f"plackett_{name} reads pictures of 3 channels, not {in_chans}.")
        head = given.pop("float32_head", False)
        # timm hands its own settings to every network; one that changes nothing is welcome.
        unknown = [key for key, value in given.items() if value and key not in _IGNORED]
        if unknown:
            raise InputError(f"plackett_{name} has no option {unknown[0]!r}; it takes num_classes and float32_head.")
        config = {
            "input_size": (3, 32, 32), "num_classes": 100, "mean": MEAN, "std": STD, "crop_pct": 1.0,
            "interpolation": "bicubic", "architecture": f"plackett_{name}", **(packed or {}),
        }  # fmt: skip
        classes = int(config["num_classes"]) if num_classes is None else num_classes
        network: Any = MODELS[name](classes, float32_head=head)
        if pretrained:
            from timm.models import load_pretrained

            load_pretrained(network, config, num_classes=classes)
        network.num_classes = classes
        network.pretrained_cfg = network.default_cfg = {**config, "num_classes": classes}
        made: nn.Module = network
        return made

    entry.__name__ = entry.__qualname__ = f"plackett_{name}"
    return entry


def _of_a_folder(config: Any) -> dict[str, Any] | None:
    """What timm read from a folder that was packed for the hub; None where the network was named alone."""
    held = config if isinstance(config, dict) else getattr(config, "__dict__", {})
    return {key: value for key, value in held.items() if value is not None} if held.get("source") in _SOURCES else None


_SOURCES = ("hf-hub", "local-dir")
_IGNORED = ("pretrained_cfg_overlay", "pretrained_model_args", "cache_dir")
