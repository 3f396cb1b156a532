"""Recipes carried out: what is missing is trained, what is there is not, and a kill costs nothing that was saved."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from plackett.data import cifar100
from plackett.errors import InputError
from plackett.experiments import cells, recipes, reproduce
from plackett.experiments.records import read_run
from plackett.experiments.reproduce import Order, Progress
from plackett.training import Cohort
from tests.cifar import Cifar
from tests.experiments.test_recipes import TEXT

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from plackett.cli import main; main()"]


def order(out: Path, **changes: Any) -> Order:
    recipe = recipes.parse(TEXT, "mine.yaml")
    given = {"recipe": recipe, "pairs": ["mlp"], "methods": ["ce", "pld"], "seeds": [0, 1], "out": out,
             "results": out, "train_teacher": True, "device": "cpu"}  # fmt: skip
    return Order(**{**given, **changes})


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods, two seeds."""
    out = tmp_path_factory.mktemp("runs") / "mine"
    reproduce.run(order(out))
    return out


def copied(done: Path, to: Path) -> Path:
    subprocess.run(["cp", "-r", str(done), str(to)], check=True)
    return to / done.name


def untouchable(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("something was trained")

    monkeypatch.setattr(Cohort, "fit", fail)


def test_every_cell_leaves_a_line_and_every_cohort_a_run_folder(done: Path) -> None:
    held = cells.read(cells.files(done))
    assert set(held) == {("mine", "mlp", method, seed) for method in ("ce", "pld") for seed in (0, 1)}
    ce, pld = held["mine", "mlp", "ce", 0], held["mine", "mlp", "pld", 0]
    assert ce.teacher is None
    assert ce.config["teacher"] is None
    note = json.loads((done / "teachers" / "mlp_teacher.json").read_text())
    assert pld.teacher is not None
    assert (pld.teacher.sha256, pld.teacher.accuracy) == (note["sha256"], note["accuracy"])
    assert pld.cohort == ["ce", "pld"]
    run = read_run(done / "mlp" / "seed-0-ce+pld")
    assert not run.problems
    assert run.results is not None
    assert run.results.students["pld"].accuracy == pld.accuracy
    assert [epoch.students["pld"].accuracy for epoch in run.metrics][-1] == pld.accuracy
    assert run.record.data.fingerprint == pld.config["data"]


def test_what_is_there_is_not_trained_again(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (done / "cells.jsonl").read_bytes()
    untouchable(monkeypatch)
    found, stopped = reproduce.run(order(done))
    assert (len(found), stopped) == (4, [])
    assert (done / "cells.jsonl").read_bytes() == before


def test_only_what_is_missing_is_trained_and_equals_what_it_is_in_company(done: Path, tmp_path: Path) -> None:
    out = copied(done, tmp_path)
    lines = (out / "cells.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["method"] == "ce" or json.loads(line)["seed"] == 0]
    (out / "cells.jsonl").write_text("".join(kept))
    told: list[Progress] = []
    found, _ = reproduce.run(order(out), told.append)
    assert len(found) == 4
    assert (out / "mlp" / "seed-1-pld").is_dir()
    assert told[-1].done == told[-1].total == 2
    alone = cells.read(cells.files(out))["mine", "mlp", "pld", 1]
    together = cells.read(cells.files(done))["mine", "mlp", "pld", 1]
    assert alone.cohort == ["pld"]
    assert alone.accuracy == together.accuracy
    mine = torch.load(out / "mlp/seed-1-pld/last.ckpt", weights_only=True)["students"]["pld"]["model"]
    theirs = torch.load(done / "mlp/seed-1-ce+pld/last.ckpt", weights_only=True)["students"]["pld"]["model"]
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_the_best_weights_are_kept_beside_the_last(done: Path) -> None:
    run = read_run(done / "mlp" / "seed-0-ce+pld")
    assert run.results is not None
    for method in ("ce", "pld"):
        path = done / "mlp" / "seed-0-ce+pld" / f"best-{method}.safetensors"
        with safe_open(path, framework="pt") as held:
            said = held.metadata()
        result = run.results.students[method]
        assert (float(said["score"]), int(said["epoch"])) == (result.best_accuracy, result.best_epoch)


def test_another_configuration_is_refused(done: Path, tmp_path: Path) -> None:
    out = copied(done, tmp_path)
    with pytest.raises(InputError) as error:
        reproduce.run(order(out, recipe=recipes.parse(TEXT, "mine.yaml").lasting(3)))
    assert str(error.value) == (
        f"{out}: the cell mine, mlp, ce, seed 0 was made by another configuration: "
        "training.epochs was 2 and is 3. Keep the two in different folders, or take one of them away."
    )


def test_files_of_cells_elsewhere_count_as_there(done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    untouchable(monkeypatch)
    teacher = done / "teachers" / "mlp_teacher.safetensors"
    asked = order(tmp_path / "new", results=done / "more.jsonl", train_teacher=False, teacher=teacher)
    assert len(reproduce.run(asked)[0]) == 4


@pytest.mark.parametrize(("changes", "said"), [
    ({"seeds": []}, "Seeds are whole numbers from 0 on, at least one; got []."),
    ({"seeds": [-1]}, "Seeds are whole numbers from 0 on, at least one; got [-1]."),
    ({"per_cohort": 0}, "A cohort has at least 1 student, not 0."),
    ({"teacher": Path("t.safetensors"), "pairs": ["mlp", "other"]},
     "--teacher is the teacher of one pair, but there are 2; name it by --pair."),
    ({"teacher": Path("t.safetensors")},
     "A teacher is either trained (--train-teacher) or read from a file (--teacher), not both."),
    ({"teacher": Path("t.safetensors"), "train_teacher": False}, "There is no teacher t.safetensors."),
])  # fmt: skip
def test_what_does_not_fit_is_said_first(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        order(tmp_path, **changes)
    assert str(error.value) == said


def test_a_teacher_that_is_nowhere_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        reproduce.run(order(tmp_path / "out", train_teacher=False))
    assert str(error.value) == (
        f"There is no teacher for mlp: neither {tmp_path}/out/teachers/mlp_teacher.safetensors nor "
        "results/mine/teachers/mlp_teacher.safetensors exists. "
        "Train it with --train-teacher, or name a file with --teacher."
    )


def refused(done: Path, folder: Path, **tensors: torch.Tensor | None) -> str:
    """What is said of a teacher some of whose tensors are others, or gone."""
    held = load_file(done / "teachers" / "mlp_teacher.safetensors")
    path = folder / "teacher.safetensors"
    save_file({**{k: v for k, v in held.items() if k not in tensors}, **{k: v for k, v in tensors.items()
                                                                      if v is not None}}, path)  # fmt: skip
    with pytest.raises(InputError) as error:
        reproduce.run(order(folder / "out", train_teacher=False, teacher=path))
    return str(error.value).replace(str(path), "FILE")


def test_a_teacher_of_another_kind_is_refused(done: Path, tmp_path: Path) -> None:
    held = load_file(done / "teachers" / "mlp_teacher.safetensors")
    first = next(iter(held))
    fewer = {name: tensor[:7].clone() for name, tensor in held.items() if name.startswith("head.")}
    assert refused(done, tmp_path, **fewer) == (
        "FILE is a mlp_teacher of 7 classes, but the data has 10 (head.weight)."
    )
    assert refused(done, tmp_path, **{first: None}) == (
        f"FILE does not hold a mlp_teacher: 1 of its {len(held)} tensors are missing (first {first}), "
        "0 others are there."
    )
    assert refused(done, tmp_path, **{first: torch.zeros(3, 3)}) == (
        f"FILE does not hold a mlp_teacher: 1 of its {len(held)} tensors have another shape, "
        f"first {first}: [3, 3], not {list(held[first].shape)}."
    )
    (tmp_path / "teacher.safetensors").write_bytes(b"\x08")
    with pytest.raises(InputError, match=r"^The teacher .*teacher\.safetensors cannot be read \("):
        reproduce.run(order(tmp_path / "o", train_teacher=False, teacher=tmp_path / "teacher.safetensors"))


def test_a_teacher_that_was_replaced_is_refused(done: Path, tmp_path: Path) -> None:
    out = copied(done, tmp_path)
    path = out / "teachers" / "mlp_teacher.safetensors"
    held = load_file(path)
    save_file({name: tensor + 1 if tensor.is_floating_point() else tensor for name, tensor in held.items()}, path)
    with pytest.raises(InputError) as error:
        reproduce.run(order(out, seeds=[5]))
    assert str(error.value).endswith(
        "one of the two was replaced or damaged. Get both again, or train the teacher anew with --train-teacher."
    )


def test_a_teacher_is_rounded_once_and_read_as_it_was_written(done: Path) -> None:
    held = load_file(done / "teachers" / "mlp_teacher.safetensors")
    assert {tensor.dtype for tensor in held.values() if tensor.dim() > 1} == {torch.float16}
    assert {tensor.dtype for tensor in held.values() if tensor.dim() == 1} == {torch.float32}
    note = json.loads((done / "teachers" / "mlp_teacher.json").read_text())
    assert note["config"]["training"]["epochs"] == 2
    assert abs(note["accuracy"] - note["exact_accuracy"]) < 0.02


def begin(out: Path, recipe: Path) -> subprocess.Popen[str]:
    arguments = ["compare", str(recipe), "--out", str(out), "--device", "cpu"]
    return subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def weights(out: Path) -> dict[str, dict[str, torch.Tensor]]:
    found = {}
    for path in sorted(out.rglob("last.ckpt")):
        for name, state in torch.load(path, weights_only=True)["students"].items():
            found[f"{path.parent.name}/{name}"] = state["model"]
    return found


def test_a_command_killed_again_and_again_ends_with_the_same_weights(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(TEXT.replace("epochs: 2, batch_size: 50", "epochs: 40, batch_size: 50"))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    printed, _ = begin(whole, recipe).communicate(timeout=120)
    for mark in ("teachers/training-mlp_teacher/last.ckpt", "mlp/seed-0-ce+pld/last.ckpt"):
        process = begin(killed, recipe)
        until = time.monotonic() + 60
        while not (killed / mark).exists() and time.monotonic() < until and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=20)
        assert process.returncode == -signal.SIGKILL, "it was over before it could be killed"
    again, _ = begin(killed, recipe).communicate(timeout=120)
    tables = [text[text.index("mlp (mine") :].rpartition("Cells: ")[0] for text in (printed, again)]
    assert tables[0] == tables[1]
    expected, found = weights(whole), weights(killed)
    names = {"training-mlp_teacher/mlp_teacher", "seed-0-ce+pld/ce", "seed-0-ce+pld/pld"}
    assert set(expected) == set(found) == names
    for name, tensors in expected.items():
        assert all(torch.equal(tensor, found[name][key]) for key, tensor in tensors.items())


def test_cifar_networks_go_the_same_way(cifar: Cifar, tmp_path: Path) -> None:
    """One epoch of small pictures, features among what is read, a teacher that is trained first."""
    small = recipes.read("cifar100").lasting(1, teacher=True)
    pairs = {"resnet56-resnet20": small.pairs["resnet56-resnet20"].model_copy(update={"teacher": "resnet20"})}
    training = small.training.model_copy(update={"batch_size": 250})
    recipe = small.model_copy(update={"pairs": pairs, "training": training, "teacher_training": training})
    data = cifar100.prepare(cifar.binary, tmp_path / "data", parts=cifar.parts).parent
    asked = order(tmp_path, recipe=recipe, pairs=list(pairs), methods=["pld", "at"], seeds=[0], data=data)
    found, stopped = reproduce.run(asked)
    assert not stopped
    assert [cell.method for cell in found] == ["pld", "at"]
    assert all(cell.accuracy is not None and cell.test == 200 for cell in found)
    assert found[1].config["terms"]["at"]["taps"] == ["stage1", "stage2", "stage3"]
    assert reproduce.run(replace(asked, train_teacher=True))[0] == found
