"""A run folder is written whole or not at all, and a damaged one is told of in a sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plackett.errors import InputError
from plackett.experiments.records import METRICS, RESULTS, RUN, find_runs, read_run, write_json, write_text
from plackett.experiments.study import STUDY, StudyRecord, read_study
from tests.experiments.runs import record, write_run


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "r", 3, {"CE": 0.5, "PLD": 0.75}))
    assert run.problems == []
    assert run.record == record(3, ["CE", "PLD"])
    assert [epoch.epoch for epoch in run.metrics] == [0, 1, 2]
    assert run.results is not None
    assert run.results.students["PLD"].accuracy == 0.75


def test_a_failed_write_leaves_the_last_good_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "document.json"
    write_text(path, "good")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_text(path, "new")
    assert path.read_text() == "good"
    assert os.listdir(tmp_path) == ["document.json"]


def test_a_write_that_fails_names_the_file_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as found:
        write_text(tmp_path / "folder", "text")
    assert found.value.filename == str(tmp_path / "folder")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path / ".document.json.x1y2"))

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(PermissionError) as denied:
        write_text(tmp_path / "document.json", "text")
    assert denied.value.filename == str(tmp_path / "document.json")
    assert os.listdir(tmp_path) == ["folder"]


def test_a_torn_last_line_of_metrics_is_left_out_and_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "r", 0, {"CE": 0.5})
    text = (folder / METRICS).read_text()
    (folder / METRICS).write_text(text[:-20])
    run = read_run(folder)
    assert len(run.metrics) == 2
    assert len(run.problems) == 1
    assert run.problems[0].startswith(f"{folder / METRICS} is damaged from line 3 of 3 on: ")


@pytest.mark.parametrize(("name", "content", "sentence"), [
    (RESULTS, None, "is missing: the run was stopped before it was written, or the file was taken away."),
    (RESULTS, "{", "is damaged: Expecting property name"),
    (RESULTS, "{}", "is not as expected: students: Field required."),
    (RESULTS, "[]", "is not as expected: "),
    (RESULTS, '{"schema_version": 9}', "has schema version 9, this plackett reads 1: use the version that wrote it."),
    (METRICS, None, "cannot be read: No such file or directory."),
])  # fmt: skip
def test_broken_parts_of_a_run_are_told_in_a_sentence(
    tmp_path: Path, name: str, content: str | None, sentence: str
) -> None:
    folder = write_run(tmp_path / "r", 0, {"CE": 0.5})
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    run = read_run(folder)
    assert len(run.problems) == 1
    assert run.problems[0].startswith(f"{folder / name} {sentence}")
    assert (run.results is None) == (name == RESULTS)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"schema_version": 2}', b"{}", b"null"])
def test_without_a_readable_run_json_there_is_no_run(tmp_path: Path, content: bytes) -> None:
    folder = write_run(tmp_path / "r", 0, {"CE": 0.5})
    (folder / RUN).write_bytes(content)
    with pytest.raises(InputError, match=r"run\.json (is|has|cannot)"):
        read_run(folder)


def test_a_run_that_is_not_finished_has_no_results_even_if_old_ones_lie_there(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "r", 0, {"CE": 0.5})
    stopped = record(0, ["CE"]).model_copy(update={"status": "failed", "message": "the disk was full"})
    write_json(folder / RUN, stopped)
    run = read_run(folder)
    assert run.results is None
    assert run.problems == [f"{folder} is not finished: its status is 'failed' (the disk was full)."]


def test_folders_that_hold_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no run folder"):
        find_runs(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"There is no run\.json in or below"):
        find_runs(tmp_path)


def test_run_folders_without_an_experiment_are_gathered_by_group(tmp_path: Path) -> None:
    for seed in range(2):
        write_run(tmp_path / f"x{seed}", seed, {"PLD": 0.5, "CE": 0.5}, group="x")
    write_run(tmp_path / "y", 0, {"PLD": 0.5, "CE": 0.5}, group="y")
    study = read_study(tmp_path)
    assert {group: len(runs) for group, runs in study.runs.items()} == {"x": 2, "y": 1}
    assert study.record.baseline == "CE"


def test_an_experiment_counts_its_own_runs_only_and_names_the_missing(tmp_path: Path) -> None:
    write_run(tmp_path / "0", 0, {"CE": 0.5})
    write_run(tmp_path / "left-over", 9, {"CE": 0.1})
    written = StudyRecord(
        name="n", title="t", question="", command="c", status="running", baseline="CE",
        cases=[{"group": "g", "title": "G"}], runs=["0", "1"],
    )  # fmt: skip
    write_json(tmp_path / STUDY, written)
    study = read_study(tmp_path)
    assert [run.record.seed for run in study.all_runs] == [0]
    assert "its status is 'running'" in study.problems[0]
    assert study.problems[1].startswith(f"{tmp_path / '1' / RUN} is missing")


def test_records_statistics_and_tables_do_without_torch(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "r", 0, {"CE": 0.5})
    code = (
        "import sys, json, pathlib\n"
        "from plackett.experiments import records, statistics, study, surroundings, tables\n"
        f"run = records.read_run(pathlib.Path({str(folder)!r}))\n"
        "surroundings.versions(), surroundings.commit(), surroundings.processor()\n"
        "print(json.dumps([run.record.seed, 'torch' in sys.modules]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == [0, False]


def test_folders_of_more_seeds_make_one_comparison_and_the_same_again_another(tmp_path: Path) -> None:
    for name, seeds in {"a": (0, 1), "b": (2, 3), "c": (0, 1)}.items():
        for seed in seeds:
            write_run(tmp_path / name / str(seed), seed, {"CE": 0.5}, group="x")
    study = read_study(*(tmp_path / name for name in "abc"))
    seeds_of = {group: [run.record.seed for run in runs] for group, runs in study.runs.items()}
    assert seeds_of == {"x": [0, 1, 2, 3], "x (c)": [0, 1]}
    assert [case.title for case in study.record.cases] == ["x", "x (c)"]
    assert study.folder == tmp_path
    assert {group: len(runs) for group, runs in read_study(tmp_path).runs.items()} == {"x": 4, "x (c)": 2}


def test_methods_of_a_seed_may_lie_in_several_folders(tmp_path: Path) -> None:
    write_run(tmp_path / "ce", 0, {"CE": 0.5})
    write_run(tmp_path / "pld", 0, {"PLD": 0.6})
    assert {group: len(runs) for group, runs in read_study(tmp_path).runs.items()} == {"g": 2}


def test_experiments_below_a_folder_keep_their_titles(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_run(tmp_path / name / "0", 0, {"CE": 0.5}, group=name)
        written = StudyRecord(
            name=name, title=name.title(), question="", command=f"plackett {name}", status="finished", baseline="CE",
            cases=[{"group": name, "title": name.upper()}], runs=["0"], seconds=1.5,
        )  # fmt: skip
        write_json(tmp_path / name / STUDY, written)
    record = read_study(tmp_path).record
    assert record.title == "2 experiments: One; Two"
    assert [case.title for case in record.cases] == ["ONE", "TWO"]
    assert record.command == "plackett one\nplackett two"
    assert record.seconds == 3.0


def test_a_damaged_experiment_or_a_run_without_its_record_is_a_problem(tmp_path: Path) -> None:
    write_run(tmp_path / "0", 0, {"CE": 0.5})
    write_run(tmp_path / "1", 1, {"CE": 0.5})
    (tmp_path / "1" / RUN).unlink()
    (tmp_path / STUDY).write_text("{")
    study = read_study(tmp_path)
    assert [run.record.seed for run in study.all_runs] == [0]
    assert study.problems[0].startswith(f"{tmp_path / STUDY} is damaged: ")
    assert study.problems[1].startswith(f"{tmp_path / '1' / RUN} is missing: ")


def test_the_baseline_is_cross_entropy_whatever_it_is_called(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "0", 0, {"kd": 0.5, "alone": 0.5})
    made = record(0, ["kd", "alone"])
    for terms in ({"ce": 1.0}, {"terms": {"ce": 1.0}, "teacher": None}):
        write_json(folder / RUN, made.model_copy(update={"config": {"methods": {"kd": {"kd": 1.0}, "alone": terms}}}))
        assert read_study(tmp_path).record.baseline == "alone"
    write_json(folder / RUN, made)
    assert read_study(tmp_path).record.baseline == "kd"


def test_the_commit_of_sources_without_a_history_can_be_said() -> None:
    code = "from plackett.experiments import surroundings; print(surroundings.commit())"
    said = {**os.environ, "PLACKETT_COMMIT": "0123abc"}
    run = subprocess.run([sys.executable, "-c", code], env=said, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "0123abc"
