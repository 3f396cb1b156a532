"""Recipes: what the shipped ones say, and what is wrong with one, in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from plackett import models
from plackett.errors import InputError
from plackett.experiments import recipes
from plackett.objectives import Objective

TEXT = """
name: mine
data: digits
title: Mine
seeds: [0]
baseline: ce
training: {epochs: 2, batch_size: 50, learning_rate: 0.03, weight_decay: 0.01}
evaluate_every: 1
checkpoint_every: 1
pairs: {mlp: {teacher: mlp_teacher, student: mlp_student}}
default_pairs: [mlp]
default_methods: [ce, pld]
methods:
  ce: {title: CE, preset: ce}
  pld: {title: PLD, terms: {pld: {temperature: 2.0}}}
smoke: {epochs: 1, seeds: [0], pairs: [mlp], methods: [ce]}
"""


def test_the_papers_recipe_is_as_the_paper_says() -> None:
    recipe = recipes.read("cifar100")
    said = recipe.training
    assert (said.epochs, said.batch_size, said.learning_rate, said.weight_decay) == (250, 128, 1e-3, 0.5)
    assert (said.padding, said.flip, recipe.seeds, recipe.for_teacher) == (4, True, [0, 1, 2], said)
    assert set(recipe.pairs) == {
        "wrn40_2-wrn40_1", "resnet56-resnet20", "resnet32x4-resnet8x4", "resnet50-mobilenetv2",
    }  # fmt: skip
    pair = "resnet56-resnet20"
    assert recipe.terms("kd", pair) == {"ce": 0.1, "kd": {"weight": 0.9, "temperature": 4.0}}
    assert recipe.terms("dist", pair) == {
        "ce": 1.0, "dist": {"weight": 1.0, "beta": 2.0, "gamma": 2.0, "temperature": 4.0},
    }  # fmt: skip
    assert recipe.terms("pld", pair)["pld"]["temperature"] == 4.0
    assert recipe.terms("dist-plain", pair)["dist"]["scale"] is None
    assert recipe.terms("pld-label1", pair)["pld"]["label_weight"] == 1.0


@pytest.mark.parametrize("name", recipes.SHIPPED)
def test_every_method_of_every_pair_is_an_objective(name: str) -> None:
    recipe = recipes.read(name)
    for pair, networks in recipe.pairs.items():
        with torch.device("meta"):
            network = models.create(networks.student, classes=10)
        for method in recipe.methods:
            objective = Objective(recipe.terms(method, pair, getattr(network, "taps", ())))
            assert objective.reads_teacher == (method != "ce")
            assert objective.reads_features == (recipe.methods[method].reads is not None)


def test_features_are_read_where_their_authors_read_them() -> None:
    recipe = recipes.read("cifar100")
    taps = ("stem", "stage1_pre", "stage1", "stage2_pre", "stage2", "stage3_pre", "stage3", "embedding")
    read = {method: Objective(recipe.terms(method, "resnet56-resnet20", taps)).taps
            for method in ("at", "fitnet", "pkt", "rkd", "sp", "vid")}  # fmt: skip
    stages = ("stage1", "stage2", "stage3")
    assert read == {
        "at": stages, "fitnet": ("stage2",), "pkt": ("embedding",), "rkd": ("embedding",), "sp": ("stage3",),
        "vid": stages,
    }  # fmt: skip


def test_the_smoke_size_is_small_and_lasting_changes_both_networks() -> None:
    small = recipes.read("cifar100").smoked()
    assert (small.training.epochs, small.for_teacher.epochs, small.default_pairs) == (2, 2, ["resnet56-resnet20"])
    longer = recipes.parse(TEXT, "mine.yaml").lasting(9)
    assert (longer.training.epochs, longer.for_teacher.epochs) == (9, 2)
    with pytest.raises(InputError, match=r"^Training takes at least 1 epoch, not 0\.$"):
        longer.lasting(0)


@pytest.mark.parametrize(("old", "new", "said"), [
    ("evaluate_every: 1", "evaluate_evry: 1",
     "The recipe mine.yaml: there is no key 'evaluate_evry'; did you mean 'evaluate_every'? (choices: baseline, "),
    ("learning_rate: 0.03", "learning_rate: -1",
     "The recipe mine.yaml, training.learning_rate: Input should be greater than 0."),
    ("{title: CE, preset: ce}", "{title: CE, preset: ce, terms: {ce: 1.0}}",
     "The recipe mine.yaml, methods.ce: a method has either a preset or terms."),
    ("default_methods: [ce, pld]", "default_methods: [ce, pdl]",
     "The recipe mine.yaml: there is no method 'pdl'; did you mean 'pld'? (choices: ce, pld)."),
    ("default_pairs: [mlp]", "default_pairs: [mpl]",
     "The recipe mine.yaml: there is no pair 'mpl'; did you mean 'mlp'? (choices: mlp)."),
    ("data: digits", "data: mnist", "The recipe mine.yaml, data: Input should be 'cifar100' or 'digits'."),
    ("seeds: [0]\n", "seeds: [0\n", "The recipe mine.yaml is not YAML: "),
])  # fmt: skip
def test_what_is_wrong_with_a_recipe_is_said(old: str, new: str, said: str) -> None:
    assert TEXT.count(old) >= 1
    with pytest.raises(InputError) as error:
        recipes.parse(TEXT.replace(old, new, 1), "mine.yaml")
    assert str(error.value).startswith(said)


def test_a_recipe_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        recipes.read("cifar10")
    assert str(error.value).startswith("There is no recipe 'cifar10'; did you mean 'cifar100'? (choices: ")
    with pytest.raises(InputError, match=r"^The recipe .*none\.yaml cannot be read: "):
        recipes.read(str(tmp_path / "none.yaml"))
    with pytest.raises(InputError, match=r"^The recipe mine has no method 'kd'; choices: ce, pld\.$"):
        recipes.parse(TEXT, "mine.yaml").chosen_methods(["kd"])
