"""Who makes a network of a name: timm, torchvision, this package, or a function of one's own."""

from __future__ import annotations

from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.models import registry
from plackett.models.from_function import from_function
from plackett.models.from_timm import from_timm
from plackett.models.from_torchvision import from_torchvision
from plackett.models.made import Made, Maker, Options, called, near
from plackett.models.with_timm import MEAN, STD


def maker(spec: str) -> tuple[Maker, str]:
    """Who makes a network of this specification, and what it is called there."""
    source, colon, name = spec.partition(":")
    if not colon:
        return _ours, spec
    if not source or not name:
        raise InputError(
            f"{spec!r} names no network: write timm:NAME, torchvision:NAME, package.module:function, or a name of "
            f"this package ({', '.join(registry.names())})."
        )
    if source == "timm":
        return from_timm, name
    if source == "torchvision":
        return from_torchvision, name
    return from_function, spec


def _ours(name: str, classes: int | None, pretrained: bool, sight: Sight | None, options: Options) -> Made:
    if name not in registry.MODELS:
        raise InputError(
            f"There is no model named {name!r}; {near(name, registry.names())}(choices: "
            f"{', '.join(registry.names())}, timm:NAME, torchvision:NAME, or a function of your own as "
            "package.module:function)"
        )
    if pretrained:
        raise InputError(f"{name} has no weights to download; name a file of weights instead of pretrained.")
    outputs = 1000 if classes is None else classes
    network = called(name, lambda: registry.create(name, classes=outputs, **options))
    if getattr(network, "channels", 3) is None:
        return Made(network, outputs, Sight(8, (0.0,), (1.0,), crop=1.0))
    return Made(network, outputs, Sight(32, MEAN, STD, crop=1.0))
