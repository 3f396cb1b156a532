"""What a command line and a recipe say together."""

from __future__ import annotations

from pathlib import Path

import pytest

from plackett.distilling import terms
from plackett.distilling.asked import Asked, read
from plackett.errors import InputError


def test_what_is_said_last_holds(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("teacher: a\nobjective: kd\ntraining: {epochs: 5, clip: 1.0}\n")
    asked = read(str(recipe), {"teacher": "b", "student": None}, ["epochs=7", "training.weight_decay=1e-2", "flip=0"])
    assert (asked.teacher, asked.student, asked.objective) == ("b", "", ["kd"])
    assert (asked.training.epochs, asked.training.clip, asked.training.weight_decay) == (7, 1.0, 0.01)
    assert asked.augment.flip == 0
    assert asked.mix == Asked().mix


def test_a_recipe_has_short_keys_too_and_none_twice(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("epochs: 5\ntraining: {clip: 1.0}\nflip: 0\n")
    asked = read(str(recipe), {}, ["optimiser_options.eps=1e-6"])
    assert (asked.training.epochs, asked.training.clip, asked.augment.flip) == (5, 1.0, 0)
    assert asked.training.optimiser_options == {"eps": 1e-6}
    recipe.write_text("epochs: 5\ntraining: {epochs: 6}\n")
    with pytest.raises(InputError) as told:
        read(str(recipe), {})
    assert str(told.value) == "The recipe says epochs twice: once alone, once in training. Leave one of them out."


def test_options_of_an_objective_by_name_and_by_terms() -> None:
    asked = read(None, {"objective": "kd, pld"}, ["objective.kd.ce_weight=0.3", "objective.pld.label_weight=0.5"])
    found = terms.methods(asked)
    assert found["KD"] == {"ce": {"weight": 0.3}, "kd": {"weight": 0.7, "temperature": 2.0}}
    assert found["PLD"]["pld"]["label_weight"] == 0.5
    assert read(None, {"objective": "PLD, CE"}).objective == ["pld", "ce"]
    asked = read(None, {"objective": {"ce": 0.5, "pld": 1.0}}, ["objective.pld.temperature=3"])
    assert terms.methods(asked) == {"CE+PLD": {"ce": 0.5, "pld": {"weight": 1.0, "temperature": 3}}}


def test_the_temperature_is_suggested_unless_it_is_said() -> None:
    by_name = read(None, {"objective": "pld,kd"})
    found = terms.with_temperature(by_name, terms.methods(by_name), 4.0)
    assert found["PLD"]["pld"]["temperature"] == 4.0
    assert found["KD"]["kd"]["temperature"] == 2.0
    assert terms.temperature(found["PLD"]) == 4.0
    assert terms.temperature(found["KD"]) is None
    said = read(None, {}, ["objective.pld.temperature=0.5"])
    assert terms.with_temperature(said, terms.methods(said), 4.0)["PLD"]["pld"]["temperature"] == 0.5


def test_features_are_read_where_their_authors_read_them() -> None:
    asked = read(None, {"objective": "fitnet,at,sp,pkt"})
    found, stages = terms.methods(asked), ("stage1", "stage2", "stage3")
    assert terms.reads(found, stages) == ("stage2", "stage1", "stage3", "embedding")
    channels = {"stage1": 8, "stage2": 16, "stage3": 32, "embedding": 32}
    whole = terms.projected(found, stages, channels, {name: 2 * n for name, n in channels.items()})
    assert whole["FitNet"]["fitnet"]["taps"] == ["stage2"]
    assert (whole["FitNet"]["fitnet"]["student_channels"], whole["FitNet"]["fitnet"]["teacher_channels"]) == (
        [16],
        [32],
    )
    assert whole["SP"]["sp"]["taps"] == ["stage3"]
    assert whole["PKT"]["pkt"]["taps"] == ["embedding"]
    with pytest.raises(InputError, match="these two share none by name: name features of both with student_taps"):
        terms.reads({"AT": {"at": 1000.0}}, ())


@pytest.mark.parametrize(("pair", "said"), [
    ("objective.pld=2", "'objective.pld' is not understood: write objective.NAME.OPTION, such as"),
    ("=2", "'=2' is not understood: write key=value"),
    ("augment.flop=1", "augment has no key 'flop'; did you mean 'flip'? (choices: "),
    ("sseds=1", "There is no key 'sseds'; did you mean 'seeds'? (choices: "),
])  # fmt: skip
def test_mistakes_get_their_sentence(pair: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read(None, {}, [pair])
    assert str(error.value).startswith(said)


def test_a_recipe_that_is_none_gets_its_sentence(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("- a\n")
    (tmp_path / "odd.yaml").write_text("a: [\n")
    for name, words in (("list.yaml", "is not a mapping of keys"), ("odd.yaml", "is not YAML"),
                        ("none.yaml", "cannot be read: No such file")):  # fmt: skip
        with pytest.raises(InputError, match=words):
            read(str(tmp_path / name), {})
    with pytest.raises(InputError, match="No objective 'kd' is trained, so nothing of it can be changed"):
        terms.methods(read(None, {"changes": {"kd": {"temperature": 2}}}))
