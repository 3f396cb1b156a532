"""Presets: the paper's numbers, the published ones, and that an objective takes every one of them."""

from __future__ import annotations

import json

import pytest
import torch

from plackett import InputError, Objective, presets

EVERY = [(data, method) for data in presets.names() for method in presets.names(data)]


@pytest.mark.parametrize(("data", "method"), EVERY)
def test_an_objective_takes_it(data: str, method: str) -> None:
    pairs = presets.pairs(data)
    for pair in (*pairs, *([] if method in ("fitnet", "vid") else [None])):
        terms = presets.get(data, method, pair=pair)
        objective = Objective(terms)
        assert json.loads(json.dumps(terms)) == terms  # a run folder holds it
        if not objective.reads_features:
            student, teacher, target = torch.randn(4, 7), torch.randn(4, 7), torch.arange(4)
            total, _ = objective(student.requires_grad_(), teacher, target)
            assert torch.isfinite(total)
        preset = presets.find(data, method, pair)
        assert preset.terms == terms
        assert "PLD" in preset.source
        assert (preset.reads == "logits") == (not objective.reads_features and data != "coco")


def test_the_papers_own_settings() -> None:
    get = presets.get
    assert get("cifar100", "pld") == {"pld": {"weight": 1.0, "temperature": 4.0}}
    assert get("cifar100", "dist") == {
        "ce": 1.0,
        "dist": {"weight": 1.0, "beta": 2.0, "gamma": 2.0, "temperature": 4.0},
    }
    assert get("imagenet", "kd") == {"ce": 0.1, "kd": {"weight": 0.9, "temperature": 2.0}}
    assert get("imagenet", "dist") == {
        "ce": 0.1,
        "dist": {"weight": 1.0, "beta": 0.45, "gamma": 0.45, "temperature": 1.0},
    }
    assert get("imagenet", "pld") == {"pld": {"weight": 1.0, "temperature": 1.0}}
    assert get("imagenet", "ls") == {"ce": {"weight": 1.0, "label_smoothing": 0.1}}


def test_published_defaults() -> None:
    assert presets.get("cifar100", "kd") == {"ce": 0.1, "kd": {"weight": 0.9, "temperature": 4.0}}
    weights = {"at": 1000.0, "pkt": 30000.0, "sp": 3000.0, "rkd": 1.0}
    for method, weight in weights.items():
        terms = presets.get("cifar100", method)
        own = terms[method]
        assert terms["ce"] == 1.0
        assert isinstance(own, dict)
        assert own["weight"] == weight
    betas = {"wrn40_2-wrn40_1": 6.0, "resnet56-resnet20": 2.0, "resnet32x4-resnet8x4": 8.0, "resnet50-mobilenetv2": 8.0}
    assert set(betas) == set(presets.pairs("cifar100"))
    for pair, beta in betas.items():
        own = presets.get("cifar100", "dkd", pair)["dkd"]
        assert isinstance(own, dict)
        assert (own["beta"], own["alpha"], own["temperature"], own["warmup_epochs"]) == (beta, 1.0, 4.0, 20)


def test_pairs_bring_channels_or_the_caller_does() -> None:
    fitnet = presets.get("cifar100", "fitnet", pair="resnet50-mobilenetv2")["fitnet"]
    assert fitnet == {"weight": 100.0, "student_channels": 16, "teacher_channels": 512}
    with pytest.raises(InputError, match="needs the networks' channels"):
        presets.get("cifar100", "vid")
    vid = presets.get("cifar100", "vid", student_channels=[8], teacher_channels=[16], taps=["last"])
    assert vid["vid"] == {"weight": 1.0, "student_channels": [8], "teacher_channels": [16], "taps": ["last"]}


def test_options_change_the_methods_own_term() -> None:
    assert presets.get("imagenet", "ls", label_smoothing=0.2) == {"ce": {"weight": 1.0, "label_smoothing": 0.2}}
    assert presets.get("imagenet", "listmle", top_k=5) == {"listmle": {"weight": 1.0, "top_k": 5}}
    js = presets.get("imagenet", "kd-js", temperature=1.0)["kd"]
    assert js == {"weight": 0.9, "temperature": 1.0, "divergence": "js"}


def test_each_call_gives_a_mapping_of_its_own() -> None:
    first = presets.get("imagenet", "dist-standardized")["dist"]
    assert isinstance(first, dict)
    first["beta"] = 7.0
    assert presets.get("imagenet", "dist-standardized")["dist"] != first
    assert presets.get("imagenet", "dist")["dist"] != first


def test_mistakes_get_a_sentence() -> None:
    for arguments, sentence in (
        (("cifar10", "kd"), "did you mean 'cifar100'"),
        (("cifar100", "pdl"), "did you mean 'pld'"),
        (("cifar100", "dkd", "resnet56-resnet2"), "did you mean 'resnet56-resnet20'"),
    ):
        with pytest.raises(InputError, match=sentence):
            presets.get(*arguments)
