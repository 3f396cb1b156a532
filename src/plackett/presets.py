"""The PLD paper's settings for each method on each data set, as mappings that `plackett.Objective` takes.

Where the paper gives none, the published defaults stand, and `find(...).source` says whose they are.

>>> get("imagenet", "kd")
{'ce': 0.1, 'kd': {'weight': 0.9, 'temperature': 2.0}}
>>> get("cifar100", "dkd", pair="resnet56-resnet20")["dkd"]["beta"]
2.0
>>> get("cifar100", "at", taps=["stage1", "stage2", "stage3"])["at"]
{'weight': 1000.0, 'taps': ['stage1', 'stage2', 'stage3']}
>>> print(find("cifar100", "sp").reads)
the output of the last stage of blocks, before pooling
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plackett.errors import InputError, did_you_mean

Terms = dict[str, float | dict[str, Any]]

_PAPER = "Bassam, Zhu, Bian: PLD, NeurIPS 2025"
_REPDISTILLER = "RepDistiller (github.com/HobbitLong/RepDistiller), scripts/run_cifar_distill.sh"
_MDISTILLER = "mdistiller (github.com/megvii-research/mdistiller)"
_BOTH = f"the PLD paper gives none; {_REPDISTILLER}, and {_MDISTILLER}, mdistiller/engine/cfg.py, agree"

_STAGES = "the output of every stage of blocks"
_SECOND = "the output of the second stage of blocks"
_LAST = "the output of the last stage of blocks, before pooling"
_EMBEDDING = "the pooled embedding before the classifier"


@dataclass(frozen=True)
class Preset:
    """One method's settings: what `Objective` takes, where they are from, and which layers a feature loss reads."""

    data: str
    method: str
    pair: str | None
    terms: Terms
    source: str
    reads: str = "logits"


@dataclass(frozen=True)
class _Entry:
    terms: Terms
    source: str
    reads: str = "logits"


# Channels of the stages of blocks of the paper's CIFAR-100 networks, as RepDistiller and mdistiller build them.
_CHANNELS = {
    "wrn40_2": (32, 64, 128),
    "wrn40_1": (16, 32, 64),
    "resnet56": (16, 32, 64),
    "resnet20": (16, 32, 64),
    "resnet32x4": (64, 128, 256),
    "resnet8x4": (64, 128, 256),
    "resnet50": (256, 512, 1024, 2048),
    "mobilenetv2": (12, 16, 48, 160),
}
_PAIRS = {
    "cifar100": (
        "wrn40_2-wrn40_1",
        "resnet56-resnet20",
        "resnet32x4-resnet8x4",
        "resnet50-mobilenetv2",
    ),
    "imagenet": ("resnet34-resnet18", "resnet50-mobilenetv1"),
    "coco": (),
}

_CIFAR100 = {
    "ce": _Entry({"ce": 1.0}, f"{_PAPER}, table 1"),
    "kd": _Entry({"ce": 0.1, "kd": {"weight": 0.9, "temperature": 4.0}}, _BOTH),
    "dist": _Entry(
        {"ce": 1.0, "dist": {"weight": 1.0, "beta": 2.0, "gamma": 2.0, "temperature": 4.0}},
        f"{_PAPER}, section 5.1 (CIFAR-100); times tau^2, as published code",
    ),
    "dkd": _Entry(
        {"ce": 1.0, "dkd": {"weight": 1.0, "alpha": 1.0, "beta": 8.0, "temperature": 4.0, "warmup_epochs": 20}},
        f"the PLD paper gives none; {_MDISTILLER}, mdistiller/engine/cfg.py and configs/cifar100/dkd",
    ),
    "pld": _Entry({"pld": {"weight": 1.0, "temperature": 4.0}}, f"{_PAPER}, section 5.1 (CIFAR-100)"),
    "at": _Entry({"ce": 1.0, "at": {"weight": 1000.0}}, _BOTH, _STAGES),
    "fitnet": _Entry({"ce": 1.0, "fitnet": {"weight": 100.0}}, _BOTH, _SECOND),
    "pkt": _Entry({"ce": 1.0, "pkt": {"weight": 30000.0}}, _BOTH, _EMBEDDING),
    "rkd": _Entry(
        {"ce": 1.0, "rkd": {"weight": 1.0, "distance_weight": 25.0, "angle_weight": 50.0}}, _BOTH, _EMBEDDING
    ),
    "sp": _Entry({"ce": 1.0, "sp": {"weight": 3000.0}}, _BOTH, _LAST),
    "vid": _Entry({"ce": 1.0, "vid": {"weight": 1.0}}, _BOTH, _STAGES),
}

_IMAGENET_DIST = {"weight": 1.0, "beta": 0.45, "gamma": 0.45, "temperature": 1.0}
_STANDARDIZED = f"{_PAPER}, appendix on logit standardization"
_DIVERGENCES = f"{_PAPER}, appendix on divergences, which writes no tau^2; this has it, as the main text"
_IMAGENET = {
    "ce": _Entry({"ce": 1.0}, f"{_PAPER}, section 5.2 (ImageNet), baselines"),
    "ls": _Entry({"ce": {"weight": 1.0, "label_smoothing": 0.1}}, f"{_PAPER}, section 5.2 (ImageNet), baselines"),
    "kd": _Entry(
        {"ce": 0.1, "kd": {"weight": 0.9, "temperature": 2.0}}, f"{_PAPER}, section 5.2 and its full ablation"
    ),
    "kd-reverse": _Entry({"ce": 0.1, "kd": {"weight": 0.9, "temperature": 2.0, "divergence": "reverse"}}, _DIVERGENCES),
    "kd-js": _Entry({"ce": 0.1, "kd": {"weight": 0.9, "temperature": 2.0, "divergence": "js"}}, _DIVERGENCES),
    "kd-standardized": _Entry(
        {"ce": 0.1, "kd": {"weight": 0.9, "temperature": 2.0, "standardize": "both"}}, _STANDARDIZED
    ),
    "dist": _Entry({"ce": 0.1, "dist": _IMAGENET_DIST}, f"{_PAPER}, section 5.2 and its full ablation"),
    "dist-standardized": _Entry({"ce": 0.1, "dist": {**_IMAGENET_DIST, "standardize": "both"}}, _STANDARDIZED),
    "dkd": _Entry(
        {"ce": 1.0, "dkd": {"weight": 1.0, "alpha": 1.0, "beta": 0.5, "temperature": 1.0}},
        f"the PLD paper gives none; {_MDISTILLER}, configs/imagenet (a warm-up of one epoch is none)",
    ),
    "pld": _Entry({"pld": {"weight": 1.0, "temperature": 1.0}}, f"{_PAPER}, section 5.2 (ImageNet)"),
    "pld-standardized": _Entry({"pld": {"weight": 1.0, "temperature": 1.0, "standardize": "both"}}, _STANDARDIZED),
    "pld-standardized-teacher": _Entry(
        {"pld": {"weight": 1.0, "temperature": 1.0, "standardize": "teacher"}}, _STANDARDIZED
    ),
    "listmle": _Entry({"listmle": 1.0}, f"{_PAPER}, PLD ablation, uniform weights"),
    "position_listmle": _Entry(
        {"position_listmle": 1.0}, f"{_PAPER}, PLD ablation; the weights are Lan et al.'s, see the loss's card"
    ),
    "at": _Entry(
        {"ce": 1.0, "at": {"weight": 1000.0}},
        f"the PLD paper gives none; {_MDISTILLER}, configs/imagenet and mdistiller/engine/cfg.py",
        _STAGES,
    ),
}

_COCO = {
    "dkd": _Entry(
        {"dkd": {"weight": 1.0, "alpha": 1.0, "beta": 0.25, "temperature": 1.0}},
        f"the PLD paper gives none; {_MDISTILLER}, detection/model/config.py; beside the detector's own losses",
        "the class logits of the detector's regions",
    ),
    "pld": _Entry(
        {"pld": {"weight": 1.0, "temperature": 1.0}},
        "the PLD paper gives none; tau = 1 is this package's default; beside the detector's own losses",
        "the class logits of the detector's regions",
    ),
}

_DATA: dict[str, dict[str, _Entry]] = {"cifar100": _CIFAR100, "imagenet": _IMAGENET, "coco": _COCO}

# What depends on the pair of networks: (data, method, pair) -> options of the method's own term.
_OF_PAIR: dict[tuple[str, str, str], dict[str, Any]] = {
    ("cifar100", "dkd", "wrn40_2-wrn40_1"): {"beta": 6.0},
    ("cifar100", "dkd", "resnet56-resnet20"): {"beta": 2.0},
    ("cifar100", "dkd", "resnet32x4-resnet8x4"): {"beta": 8.0},
    ("cifar100", "dkd", "resnet50-mobilenetv2"): {"beta": 8.0},
    ("imagenet", "dkd", "resnet34-resnet18"): {"beta": 0.5},
    ("imagenet", "dkd", "resnet50-mobilenetv1"): {"beta": 2.0},
}
for _pair in _PAIRS["cifar100"]:
    _teacher, _student = (_CHANNELS[_name] for _name in _pair.split("-"))
    _OF_PAIR["cifar100", "vid", _pair] = {"student_channels": list(_student), "teacher_channels": list(_teacher)}
    _OF_PAIR["cifar100", "fitnet", _pair] = {"student_channels": _student[1], "teacher_channels": _teacher[1]}


def names(data: str | None = None) -> tuple[str, ...]:
    """The data sets, or the methods with a preset on one of them.

    >>> names()
    ('cifar100', 'coco', 'imagenet')
    >>> names("coco")
    ('dkd', 'pld')
    """
    return tuple(sorted(_DATA if data is None else _methods(data)))


def pairs(data: str) -> tuple[str, ...]:
    """The pairs of networks, "teacher-student", whose settings differ on `data`.

    >>> pairs("imagenet")
    ('resnet34-resnet18', 'resnet50-mobilenetv1')
    """
    _methods(data)
    return _PAIRS[data]


def find(data: str, method: str, pair: str | None = None) -> Preset:
    """A preset with its source; `pair` is "teacher-student" where settings depend on the networks."""
    methods = _methods(data)
    if method not in methods:
        raise InputError(f"There is no preset {method!r} on {data}; {did_you_mean(method, methods)}.")
    if pair is not None and pair not in _PAIRS[data]:
        raise InputError(
            f"There is no pair {pair!r} on {data}; {did_you_mean(pair, _PAIRS[data])}. "
            "Leave pair out for settings that hold for any."
        )
    entry = methods[method]
    terms = copy.deepcopy(entry.terms)
    if pair is not None:
        _update(terms, method, _OF_PAIR.get((data, method, pair), {}))
    return Preset(data, method, pair, terms, entry.source, entry.reads)


def get(data: str, method: str, pair: str | None = None, **options: Any) -> Terms:
    """What `plackett.Objective` takes, a new mapping at each call.

    FitNet and VID need to know the networks' channels: from `pair`, or as `student_channels` and `teacher_channels`.

    Args:
        data: "cifar100", "imagenet" or "coco".
        method: one of `names(data)`.
        pair: "teacher-student", one of `pairs(data)`, where settings depend on the networks.
        options: added to the method's own term, e.g. `taps`, or an option to change.
    """
    terms = find(data, method, pair).terms
    _update(terms, method, options)
    own = terms[_own(method)]
    if method in ("fitnet", "vid") and not (
        isinstance(own, dict) and {"student_channels", "teacher_channels"} <= set(own)
    ):
        raise InputError(
            f"The preset {method!r} needs the networks' channels: give pair, {did_you_mean(pair, _PAIRS[data])}, "
            "or student_channels and teacher_channels."
        )
    return terms


def _methods(data: str) -> Mapping[str, _Entry]:
    if data not in _DATA:
        raise InputError(f"There are no presets for {data!r}; {did_you_mean(data, _DATA)}.")
    return _DATA[data]


def _own(method: str) -> str:
    """The term that a method is named for: "ls" is a cross-entropy, "kd-js" a kd."""
    return "ce" if method == "ls" else method.partition("-")[0]


def _update(terms: Terms, method: str, options: Mapping[str, Any]) -> None:
    own = terms[_own(method)]
    if options:
        terms[_own(method)] = {**(own if isinstance(own, dict) else {"weight": own}), **options}
