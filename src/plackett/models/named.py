"""A network by its name, with its weights, its classes and how it sees a picture.

    timm:mobilenetv4_conv_small     any network of timm, also timm:hf-hub:NAME and timm:local-dir:FOLDER
    torchvision:resnet18            any classifier of torchvision
    package.module:function         a function that gives a network, called with num_classes=... where it takes that
    resnet20                        one of this package
    runs/teacher                    a folder that this package or timm saved, or a run that holds one: all in one

>>> found = named("resnet20", classes=10)
>>> found.outputs, found.sight.size, found.weights
(10, 32, None)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from torch import nn

from plackett.data.sight import Sight
from plackett.errors import InputError, did_you_mean
from plackett.models import fitting
from plackett.models.made import Made
from plackett.models.makers import maker
from plackett.models.placed import configured, is_path, of_timm, placed
from plackett.models.weights import Held, read

PRETRAINED = "pretrained"
Told = Sight | Mapping[str, Any] | None


@dataclass(frozen=True)
class Named:
    """A network that was asked for by name.

    Args:
        network: in training mode, on the CPU.
        spec: its name.
        sight: how it sees a picture.
        outputs: how many logits it gives a picture.
        class_names: what they stand for, where that is known.
        weights: where its weights are from; None where they are drawn at random.
        fresh_head: its last layer is drawn at random, whatever the rest is.
        notes: sentences on what was done on the way.
    """

    network: nn.Module
    spec: str
    sight: Sight
    outputs: int
    class_names: tuple[str, ...] | None
    weights: str | None = None
    fresh_head: bool = False
    notes: tuple[str, ...] = ()


def named(
    spec: str,
    *,
    classes: Sequence[str] | int | None = None,
    weights: str | Path | None = None,
    trust: bool = False,
    sight: Told = None,
    options: Mapping[str, Any] | None = None,
) -> Named:
    """The network that `spec` names.

    Args:
        spec: timm:NAME, torchvision:NAME, package.module:function, or a name of this package.
        classes: how many the head must have, or their names: a head of another size is drawn anew and the other weights
            kept, as a student wants it. None takes the head as the weights have it, as a teacher needs it.
        weights: None draws them at random, "pretrained" is the library's own hub, anything else a file (safetensors, or
            a state_dict that torch.save wrote) or a folder packed for the hub.
        trust: also read a pickled file, which may run code.
        sight: how the network sees; None asks its library, and a mapping such as `{"size": 32}` says otherwise in part.
        options: handed to whoever makes the network.
    """
    names = tuple(classes) if isinstance(classes, Sequence) else None
    count = len(names) if names is not None else classes if isinstance(classes, int) else None
    if count is not None and count < 1:
        raise InputError(f"A network needs at least 1 class, not {count}.")
    if weights is None:
        if (folder := placed(spec)) is not None:
            return _from_folder(folder, count, names, trust, sight)
    elif is_path(spec):
        raise InputError(f"{spec} is a folder with weights of its own; leave out --weights {weights}.")
    make, name = maker(spec)
    shown = _shown(sight, spec)
    pretrained = weights == PRETRAINED
    if weights is None or pretrained:
        made = make(name, count, pretrained, shown, options or {})
        return _named(made, spec, sight, names, PRETRAINED if pretrained else None, made.fresh_head, ())

    def anew(outputs: int | None) -> Made:
        return make(name, outputs, False, shown, options or {})

    return _from_file(spec, read(weights, trust=trust), anew, count, names, sight)


def _from_file(
    spec: str, held: Held, anew: Any, count: int | None, names: tuple[str, ...] | None, sight: Told
) -> Named:
    made: Made = anew(count)
    found = fitting.fit(made.network, held)
    head = found.head(made.outputs)
    notes = [*held.notes, *fitting.notes(found, held.path)]
    if head is not None and count is None:
        made = anew(head)
        found = fitting.fit(made.network, held)
        if made.outputs != head:
            raise InputError(
                f"{held.path} is of {head} classes, but {spec} makes networks of {made.outputs} and takes no other "
                "number; let it take num_classes."
            )
        head = None
    if head is None:
        fitting.check(found, spec, held.path)
        fitting.load(made.network, found)
    else:
        fitting.load(made.network, found, without=found.reshaped)
        notes.append(
            f"The head in {held.path} has {head} classes, this network {made.outputs}: it begins with a fresh head, "
            f"and its other {len(found.fitting)} tensors are from the file."
        )
    known = held.class_names if head is None and len(held.class_names or ()) == made.outputs else None
    made = replace(made, sight=held.sight or made.sight)
    return _named(made, spec, sight, names or known, str(held.path), head is not None, notes)


def _from_folder(folder: Path, count: int | None, names: tuple[str, ...] | None, trust: bool, sight: Told) -> Named:
    """A network that this package or timm saved; its head is drawn anew where other classes are asked for."""
    from plackett.models import packed  # which may ask for a network by name in its turn

    if packed.KEY not in (config := configured(folder)):
        told = of_timm(folder, config)
        found = named(
            told.spec,
            classes=names or count,
            weights=folder,
            trust=trust,
            sight=sight if told.sight is None else _seen(sight, told.sight),
            options=told.options,
        )
        return replace(found, notes=(*told.notes, *found.notes))
    if count is not None and count != len(packed.read(folder)["classes"]):
        said = packed.read(folder)
        return named(
            said["spec"], classes=names or count, weights=folder, trust=trust, sight=sight, options=said["options"]
        )
    held = packed.load(folder, trust=trust)
    made = Made(held.network.train(), len(held.classes), held.sight, held.classes, fresh_head=False)
    return _named(made, held.spec, sight, names, str(folder), False, ())


def _named(
    made: Made,
    spec: str,
    sight: Told,
    names: tuple[str, ...] | None,
    weights: str | None,
    fresh_head: bool,
    notes: Sequence[str],
) -> Named:
    return Named(
        network=made.network,
        spec=spec,
        sight=_seen(sight, made.sight or Sight(224)),
        outputs=made.outputs,
        class_names=names or made.class_names,
        weights=weights,
        fresh_head=fresh_head,
        notes=(*made.notes, *notes),
    )


def _shown(told: Told, spec: str) -> Sight | None:
    """What whoever makes the network must know of it: its size, and all of it where no library knows."""
    if not isinstance(told, Mapping):
        return told
    knows = spec.partition(":")[0] in ("timm", "torchvision") or ":" not in spec
    return None if knows and "size" not in told else _seen(told, Sight(224))


def _seen(told: Told, own: Sight) -> Sight:
    if told is None:
        return own
    if isinstance(told, Sight):
        return told
    known = [field.name for field in fields(Sight)]
    for key in told:
        if key not in known:
            raise InputError(f"There is nothing called {key!r} in how a network sees; {did_you_mean(key, known)}.")
    planes = len(own.mean)
    try:
        part: dict[str, Any] = {
            key: _planes(value, planes) if key in ("mean", "std") else value for key, value in told.items()
        }
        return replace(own, **part)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{dict(told)} does not say how a network sees ({error}).") from error


def _planes(value: Any, planes: int) -> tuple[float, ...]:
    """One number is that of every channel."""
    return tuple(map(float, value)) if isinstance(value, Sequence) else (float(value),) * planes
