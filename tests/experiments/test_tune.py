"""Tuning: the same number of trials for all, reproducible, resumable, and blind to the test pictures."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from plackett.data import Pictures, digits
from plackett.errors import InputError
from plackett.experiments import recipes, search, tune
from plackett.experiments.task import Task, load
from plackett.training import Mode

pytest.importorskip("optuna")

DIGITS = recipes.read("digits").lasting(3, teacher=True)
COMMAND = [sys.executable, "-c", "from plackett.cli import main; main()"]


def order(out: Path, methods: tuple[str, ...] = ("kd", "pld"), **changes: Any) -> tune.Order:
    given = {"recipe": DIGITS, "pair": "mlp", "spaces": search.spaces(DIGITS, methods), "trials": 3, "out": out,
             "device": "cpu"}  # fmt: skip
    return tune.Order(**{**given, **changes})


def trials(folder: Path) -> dict[str, list[tuple[dict[str, Any], float]]]:
    import optuna

    storage = optuna.storages.RDBStorage(f"sqlite:///{folder / tune.TRIALS}")
    return {
        study.study_name: [
            (trial.params, trial.value)
            for trial in optuna.load_study(study_name=study.study_name, storage=storage).trials
            if trial.state.name == "COMPLETE"
        ]
        for study in optuna.get_all_study_summaries(storage)
    }


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune")
    tune.run(order(folder))
    return folder


def test_every_objective_has_as_many_trials_and_the_first_is_the_recipes_own(done: Path) -> None:
    found = trials(done)
    assert {method: len(each) for method, each in found.items()} == {"kd": 3, "pld": 3}
    assert found["kd"][0][0] == {"learning_rate": 0.03, "temperature": 4.0, "ce_weight": 0.1}
    assert found["pld"][0][0] == {"learning_rate": 0.03, "temperature": 4.0}
    assert len({tuple(params.values()) for params, _ in found["kd"]}) == 3


def test_the_same_seed_is_the_same_search_and_another_is_another(done: Path, tmp_path: Path) -> None:
    tune.run(order(tmp_path / "again"))
    assert trials(tmp_path / "again") == trials(done)
    tune.run(order(tmp_path / "other", seed=1, trials=2))
    assert trials(tmp_path / "other")["kd"][1] != trials(done)["kd"][1]


def test_the_test_pictures_are_not_read(done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With other labels, and pictures that would make any network say NaN, the search is the same."""
    whole = digits.load()
    poisoned = Pictures(torch.full_like(whole.test.inputs, torch.nan), whole.test.targets.flip(0), whole.test.classes)
    monkeypatch.setattr(digits, "load", lambda: replace(whole, test=poisoned))
    assert torch.isnan(load(DIGITS, None, "cpu").test.inputs).all()
    best, task = tune.run(order(tmp_path))
    assert trials(tmp_path) == trials(done)
    assert len(task.test) == 928
    assert all(0 < each.accuracy < 1 for each in best)


def test_what_is_held_out_is_not_trained_on() -> None:
    whole = digits.load()
    task = tune.held_out(load(DIGITS, None, "cpu"))
    keys = [{row.numpy().tobytes() for row in pictures.inputs} for pictures in (task.train, task.test, whole.test)]
    assert (len(task.train), len(task.test)) == (150, 928)
    assert len(keys[0] & keys[1]) <= 1  # the data hold a picture twice, or none
    assert len((keys[0] | keys[1]) & keys[2]) <= 2
    # Where the student has all of the teacher's pictures, a tenth of them is taken away, every class in its share.
    targets = torch.arange(200) % 10
    pictures = Pictures(torch.arange(200.0).reshape(200, 1, 1, 1), targets, tuple("abcdefghij"))
    part = tune.held_out(Task("digits", pictures, pictures, pictures, "x", Mode()))
    assert (len(part.train), len(part.test)) == (180, 20)
    assert torch.equal(part.test.targets.bincount(), torch.full((10,), 2))
    assert not set(part.train.inputs.flatten().tolist()) & set(part.test.inputs.flatten().tolist())
    assert part.fingerprint != "x"


def test_killed_and_run_again_it_ends_as_if_it_had_not_been(done: Path, tmp_path: Path) -> None:
    arguments = [
        *("tune", "digits", "--objective", "kd,pld", "--trials", "3", "--epochs", "3", "--device", "cpu"),
        *("--out", str(tmp_path / "t")),
    ]
    child = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        if "trial 2 of 3" in line:
            time.sleep(0.05)
            child.kill()
            break
    child.communicate()
    before = trials(tmp_path / "t")
    assert all(1 <= len(each) < 3 for each in before.values())
    again = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert trials(tmp_path / "t") == trials(done)
    for words in ("kd              3", "no test picture was read for it", "looks better on these pictures than it is"):
        assert words in again.stdout


def test_the_recipe_that_is_left_can_be_compared_with_fresh_seeds(done: Path, tmp_path: Path) -> None:
    import yaml

    asked = order(done)
    best, _ = tune.run(asked)  # all trials are there: nothing is trained
    path = tmp_path / "tuned.yaml"
    path.write_text(yaml.safe_dump(tune.tuned(asked, best), allow_unicode=True))
    recipe = recipes.read(str(path))
    assert recipe.default_methods == ["kd", "pld", "kd-tuned", "pld-tuned"]
    assert not set(recipe.seeds) & set(tune.tuning_seeds(asked))
    kd = next(each for each in best if each.method == "kd")
    assert recipe.training_of("kd-tuned").learning_rate == kd.values["learning_rate"]
    assert recipe.terms("kd-tuned", "mlp")["kd"]["temperature"] == kd.values["temperature"]
    assert recipe.terms("kd", "mlp") == DIGITS.terms("kd", "mlp")
    done_ = subprocess.run(
        [*COMMAND, "compare", str(path), "--smoke", "--out", str(tmp_path / "c")], capture_output=True, text=True
    )
    assert done_.returncode == 0, done_.stderr
    assert "kd, tuned in 3 trials" in done_.stdout


def test_minutes_end_it_with_the_same_number_of_trials(tmp_path: Path) -> None:
    best, _ = tune.run(order(tmp_path, trials=50, minutes=1e-9))
    assert [each.trials for each in best] == [1, 1]
    assert [each.accuracy for each in best] == [each.own for each in best]


def test_the_usual_spaces_are_those_of_the_method() -> None:
    recipe = recipes.read("cifar100")
    found = {method: set(search.usual(recipe, method)) for method in ("ce", "kd", "pld", "sp", "listmle")}
    assert found == {
        "ce": {"learning_rate"},
        "kd": {"learning_rate", "temperature", "ce_weight"},
        "pld": {"learning_rate", "temperature"},
        "sp": {"learning_rate", "weight"},
        "listmle": {"learning_rate"},
    }


@pytest.mark.parametrize(("text", "sentence"), [
    ("objective.kd.temperature", f"The search 'objective.kd.temperature' is not understood; {search.FORM}."),
    ("training.epochs=1..2", f"The search 'training.epochs=1..2' is not understood; {search.FORM}."),
    ("objective.kdd.temperature=1..2", "The search 'objective.kdd.temperature=1..2' is of no tuned objective; did you"),
    ("objective.kd.temperature=2..1", "The search 'objective.kd.temperature=2..1' is empty: LOW must be below HIGH."),
    ("objective.kd.temperature=0..1:log", "The search 'objective.kd.temperature=0..1:log' is empty: LOW must be above"),
    ("objective.kd.temperature=1..x", f"The search 'objective.kd.temperature=1..x' is not understood; {search.FORM}."),
])  # fmt: skip
def test_a_search_that_is_not_understood_gets_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        search.spaces(DIGITS, ["kd", "pld"], [text])
    assert str(error.value).startswith(sentence)


def test_given_searches_replace_the_usual_of_their_method() -> None:
    given = ["objective.kd.temperature=1..8:log", "objective.kd.divergence=forward,js"]
    found = search.spaces(DIGITS, ["kd", "pld"], given)
    assert found["kd"] == {
        "temperature": search.Range(1, 8, log=True), "divergence": search.Range(values=("forward", "js")),
    }  # fmt: skip
    assert set(found["pld"]) == {"learning_rate", "temperature"}
    assert search.own_values(DIGITS, "kd", found["kd"]) is None  # the recipe says nothing of the divergence
    assert search.own_values(DIGITS, "pld", {"temperature": search.Range(1, 2)}) is None


@pytest.mark.parametrize(("given", "sentence"), [
    ("objective.kd.tmeperature=1..2", "Objective term 'kd' has no option 'tmeperature'; did you mean 'temperature'?"),
    ("objective.kd.temperature=-2..2", "kd: temperature must be above 0 and finite, not -2.0; 1 leaves the logits as"),
    ("objective.kd.divergence=forward,foo", "kd: unknown divergence 'foo'; choices: forward, js, reverse."),
])  # fmt: skip
def test_what_an_objective_does_not_take_is_said_before_the_teacher_is_trained(
    tmp_path: Path, given: str, sentence: str
) -> None:
    with pytest.raises(InputError) as error:
        tune.run(order(tmp_path, spaces=search.spaces(DIGITS, ["kd"], [given])))
    assert str(error.value).startswith(sentence)
    assert not (tmp_path / "teachers").exists()


def test_another_search_in_the_same_folder_is_refused(done: Path) -> None:
    with pytest.raises(InputError, match=r"trials\.db was made by another configuration: space\.ce_weight was "):
        tune.run(order(done, spaces=search.spaces(DIGITS, ["kd"], ["objective.kd.temperature=1..2"])))


@pytest.mark.parametrize(("arguments", "sentence"), [
    (["--trials", "0"], "Tuning takes at least 1 of trials, not 0."),
    (["--minutes", "0"], "The budget in minutes is a number above 0, not 0."),
    (["--objective", "kdd"], "The recipe digits has no method 'kdd'; did you mean 'kd'?"),
    (["--pair", "mpl"], "The recipe digits has no pair 'mpl'; did you mean 'mlp'?"),
])  # fmt: skip
def test_a_mistake_is_one_sentence_and_exit_code_2(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    done = subprocess.run([*COMMAND, "tune", "digits", *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(sentence), done.stderr


def test_it_needs_its_extra(tmp_path: Path) -> None:
    code = "import sys; sys.modules['optuna'] = None; from plackett.cli import main; main(['tune', 'digits'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "plackett tune needs 'optuna', which is not installed: pip install 'plackett[tune]'.\n"
