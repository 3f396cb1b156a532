"""A sweep is a recipe with more methods: what is planned of what is typed, and what its cells say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plackett.errors import InputError
from plackett.experiments import plain, recipes, sweep, sweep_table
from plackett.experiments.cells import Cell, read
from plackett.experiments.recipes import SHIPPED, SWEEPS, Recipe
from plackett.objectives import Objective

DIGITS = recipes.read("digits")


def plan(*keys: str, along: tuple[str, ...] = (), recipe: Recipe = DIGITS) -> sweep.Plan:
    return sweep.plan(recipe, keys, along)


def terms(made: sweep.Plan) -> dict[str, Any]:
    return {point.method: point.recipe.terms(point.method, "mlp") for point in made.points}


def test_each_value_is_a_method_and_no_value_is_there_twice() -> None:
    made = plan("objective.pld.temperature=0.5,4,4.0,1", along=("ce", "ce"))
    assert made.methods == ["pld-temperature=0.5", "pld-temperature=4", "pld-temperature=1", "ce"]
    assert [term["pld"]["temperature"] for name, term in terms(made).items() if name != "ce"] == [0.5, 4.0, 1]
    assert [point.usual for point in made.points] == [False, True, False, True]
    assert len(made.recipes) == 1


def test_values_are_read_as_people_write_them() -> None:
    assert sweep.values_of("kd.temperature=1e-3,2.5E1,none,word", "1e-3,2.5E1,none,word") == [0.001, 25.0, None, "word"]


def test_keys_of_one_method_are_crossed_and_those_of_two_are_not() -> None:
    made = plan("objective.pld.temperature=1,4", "objective.pld.label_weight=none,1", "objective.kd.temperature=2,4")
    assert len(made.points) == 2 * 2 + 2
    assert terms(made)["pld-temperature=1-label_weight=none"]["pld"]["label_weight"] is None
    usual = [point.method for point in made.points if point.usual]
    assert usual == ["pld-temperature=4-label_weight=none", "kd-temperature=4"]


def test_the_weight_of_cross_entropy_leaves_the_rest_to_the_methods_own_term() -> None:
    made = terms(plan("objective.kd.ce_weight=0,0.1,1", "objective.dist.ce_weight=0.3", "objective.pld.ce_weight=0.5"))
    assert [(t["ce"]["weight"], t["kd"]["weight"]) for name, t in made.items() if name.startswith("kd")] == [
        (0.0, 1.0), (0.1, 0.9), (1.0, 0.0),
    ]  # fmt: skip
    dist = made["dist-ce_weight=0.3"]
    assert dist == {"ce": {"weight": 0.3}, "dist": {**DIGITS.terms("dist", "mlp")["dist"], "weight": 0.7}}
    assert made["pld-ce_weight=0.5"] == {"pld": {"weight": 0.5, "temperature": 4.0}, "ce": {"weight": 0.5}}


def test_a_rate_of_its_own_stays_in_the_cohort_and_epochs_do_not() -> None:
    made = plan("objective.kd.learning_rate=0.01,0.03")
    assert len(made.recipes) == 1
    assert [made.recipes[0].training_of(m).learning_rate for m in made.methods] == [0.01, 0.03]
    assert [point.usual for point in made.points] == [False, True]
    made = plan("training.epochs=5,100", along=("ce", "kd"))
    assert [one.name for one in made.recipes] == ["digits-epochs=5", "digits-epochs=100"]
    assert [one.training.epochs for one in made.recipes] == [5, 100]
    assert all(one.for_teacher == DIGITS.for_teacher and one.teachers_of == "digits" for one in made.recipes)
    assert [point.usual for point in made.points] == [False, False, True, True]


@pytest.mark.parametrize(("keys", "sentence"), [
    ((), f"There is nothing to sweep; {sweep.FORM}."),
    (("pld.temperature",), f"The sweep 'pld.temperature' is not understood; {sweep.FORM}."),
    (("objectiv.pld.temperature=1",), "There is nothing to sweep under 'objectiv'; did you mean 'objective'?"),
    (("objective.pld=1",), f"The sweep 'objective.pld=1' names no option; {sweep.FORM}."),
    (("objective.pdl.temperature=1",), "The recipe digits has no method 'pdl'; did you mean 'pld'?"),
    (("training.epohcs=1",), "A recipe's training has no key 'epohcs'; did you mean 'epochs'?"),
    (("training.epochs=5",), "A sweep over training alone needs methods: name them with --methods."),
    (("objective.kd.temperature=1", "objective.kd.temperature=2"), "A key is given twice; put all its values behind"),
    (("objective.kd.temperature=1,,2",), "The values of 'objective.kd.temperature=1,,2' must be words or numbers"),
    (("objective.kd.temperature=1..4",), "The values of 'objective.kd.temperature=1..4' are a range; a sweep"),
    (("objective.kd.ce_weight=1.5",), "ce_weight lies between 0 and 1, not at 1.5: the rest is the method's own"),
    (("objective.ce.ce_weight=0.5",), "The method 'ce' is cross-entropy alone, so ce_weight has nothing to share"),
    (("objective.kd.learning_rate=0",), "The sweep sets methods.kd-learning_rate=0.learning_rate to 0: Input should"),
])  # fmt: skip
def test_a_mistake_is_one_sentence(keys: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        plan(*keys)
    assert str(error.value).startswith(sentence)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [name for name in SHIPPED if name not in ("cifar100", "digits")])
def test_every_shipped_sweep_says_what_it_claims_and_can_be_built(name: str) -> None:
    head = [line.split(":")[0] for line in recipes.shipped(f"{name}.yaml").splitlines() if line.startswith("# ")]
    assert [word for word in head if word in ("# Claim", "# Cost", "# Command", "# Smoke")] == [
        "# Claim", "# Cost", "# Command", "# Smoke",
    ]  # fmt: skip
    recipe = recipes.read(name)
    assert recipe.sweep is not None
    data, _, kind = name.partition("-")
    assert (recipe.name, recipe.extends, recipe.data) == (name, data, data)
    assert kind in SWEEPS
    assert recipe.for_teacher == recipes.read(data).for_teacher
    for keys in (recipe.sweep.keys, sweep.smallest(recipe.sweep.keys)):
        made = sweep.plan(recipe, keys, recipe.sweep.methods)
        for point in made.points:
            Objective(point.recipe.terms(point.method, recipe.default_pairs[0]))


@pytest.mark.parametrize("kind", SWEEPS)
def test_the_committed_sweeps_of_digits_are_those_of_their_cells(kind: str) -> None:
    """`results/digits` has the cells, the tables made of them, and the page shows one of these."""
    root = Path(__file__).parents[2]
    recipe = recipes.read(f"digits-{kind}")
    assert recipe.sweep is not None
    made = sweep.plan(recipe, recipe.sweep.keys, recipe.sweep.methods)
    held = read([root / "results" / "digits" / "cells.jsonl"]).values()
    swept = sweep_table.gather(made, held, "mlp")
    assert {line.of.n for line in swept.lines if line.of} == {5}
    assert len({cell.teacher.sha256 for cell in held if cell.teacher}) == 1
    table = plain.comma_separated(sweep_table.csv_rows(recipe.name, [swept]))
    assert (root / "results" / "digits" / f"digits-{kind}.csv").read_text() == table
    if kind == "tau":
        assert sweep_table.text(swept, made.title) in (root / "docs" / "sweep.md").read_text()


@pytest.mark.parametrize("name", ["cifar100-epochs", "digits-epochs"])
def test_a_rehearsal_of_a_sweep_over_epochs_is_short(name: str) -> None:
    recipe = recipes.read(name)
    assert recipe.sweep is not None
    made = sweep.plan(recipe.smoked(None), sweep.smallest(recipe.sweep.keys), recipe.sweep.methods)
    assert [one.training.epochs for one in made.recipes] == [1, 2]
    assert all(one.for_teacher.epochs <= 2 for one in made.recipes)


def test_a_recipe_that_extends_nothing_known() -> None:
    with pytest.raises(InputError, match=r"^The recipe x extends 'cifar10'; did you mean 'cifar100'\?"):
        recipes.parse("extends: cifar10\nname: x\n", "x")


def cell(point: sweep.Point, seed: int, accuracy: float | None) -> Cell:
    return Cell(
        recipe=point.recipe.name, pair="mlp", method=point.method, title="t", seed=seed, accuracy=accuracy, epochs=1,
        stopped=None if accuracy is not None else "It stopped.", test=1000, config={}, cohort=[], mode="", device="",
        versions={}, finished="",
    )  # fmt: skip


def test_series_have_a_base_and_differences_are_paired_to_it() -> None:
    made = plan("objective.pld.temperature=1,4", along=("ce",))
    right = {("pld-temperature=1", s): 0.90 + 0.01 * s for s in range(3)}
    right |= {("pld-temperature=4", s): 0.95 + 0.01 * s + 0.001 * (s == 1) for s in range(3)}
    cells = [cell(point, s, right.get((point.method, s), 0.5)) for point in made.points for s in range(3)]
    swept = sweep_table.gather(made, cells, "mlp")
    one, four, ce = swept.lines
    assert (swept.key, one.value, four.value, ce.value) == ("temperature", "1", "4", "")
    assert four.is_base
    assert four.difference is None
    assert one.difference is not None
    assert one.difference.mean == pytest.approx(-0.05 - 0.001 / 3)
    assert one.ends is not None
    assert one.ends[0] == pytest.approx(0.91 - 4.30265 * 0.01 / 3**0.5, rel=1e-4)
    said = sweep_table.text(swept, made.title)
    assert "pld                4" in said or "base" in said
    assert sweep_table.extremes(swept) == ["pld: highest at temperature 4, the base."]
    rows = sweep_table.csv_rows("digits", [swept])
    assert all(len(row) == len(sweep_table.COLUMNS) for row in rows)


def test_what_is_highest_is_not_called_better_where_the_seeds_cannot_tell() -> None:
    made = plan("objective.pld.temperature=1,4")
    right = {"pld-temperature=1": [0.9, 0.8, 0.95], "pld-temperature=4": [0.85, 0.86, 0.84]}
    cells = [cell(p, s, right[p.method][s]) for p in made.points for s in range(3)]
    (sentence,) = sweep_table.extremes(sweep_table.gather(made, cells, "mlp"))
    assert sentence.startswith("pld: highest at temperature 1. These 3 seeds cannot tell temperature 1 from 4 (95% ")


def test_stopped_and_missing_cells_are_told_and_do_not_count() -> None:
    made = plan("objective.pld.temperature=1,4")
    cells = [cell(made.points[0], 0, None), cell(made.points[1], 0, 0.9)]
    one, four = sweep_table.gather(made, cells, "mlp").lines
    assert (one.of, one.stopped, one.difference) == (None, 1, None)
    assert four.of is not None
    assert four.ends is None
    assert "stopped" in sweep_table.text(sweep_table.gather(made, cells, "mlp"), "x")
