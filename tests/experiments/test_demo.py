"""The demo, at a tiny size: what it leaves behind, that it is the same twice, and that a kill does not matter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from plackett.errors import InputError
from plackett.experiments import demo
from plackett.experiments.records import METRICS, RESULTS, RUN, read_run
from plackett.experiments.study import read_study

SMALL = demo.Size(teacher=2, few_labels=3, all_labels=1)


def files(folder: Path) -> dict[str, bytes]:
    """What holds numbers and no times."""
    found = sorted([*folder.rglob(RESULTS), *folder.rglob(METRICS)])
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_the_same_seeds_give_the_same_numbers_on_any_number_of_threads(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    demo.run(tmp_path / "one", seeds=2, size=SMALL)
    assert torch.get_num_threads() == before
    torch.manual_seed(99)
    torch.set_num_threads(1 if before > 1 else 2)
    try:
        demo.run(tmp_path / "two", seeds=2, size=SMALL)
    finally:
        torch.set_num_threads(before)
    assert len(files(tmp_path / "one")) == 8
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_more_seeds_do_not_change_the_first(tmp_path: Path) -> None:
    demo.run(tmp_path / "one", seeds=1, size=SMALL)
    demo.run(tmp_path / "two", seeds=2, size=SMALL)
    both = files(tmp_path / "two")
    assert all(both[name] == content for name, content in files(tmp_path / "one").items())


def test_a_run_holds_what_is_needed_to_get_it_again(tmp_path: Path) -> None:
    told: list[demo.Progress] = []
    demo.run(tmp_path, seeds=1, size=SMALL, watch=told.append)
    study = read_study(tmp_path)
    assert study.problems == []
    assert list(study.runs) == ["150 labels", "all labels"]
    run = study.runs["150 labels"][0]
    assert run.record.students == list(demo.METHODS)
    assert run.record.config["methods"] == {name: dict(terms) for name, terms in demo.METHODS.items()}
    assert run.record.config["recipe"]["learning_rate"] == 0.03
    assert run.record.config["threads"] == 1
    assert run.record.versions["torch"].startswith(torch.__version__.split("+")[0])
    assert (run.record.data.train, run.record.data.test) == (150, 719)
    assert run.record.data.fingerprint != study.runs["all labels"][0].record.data.fingerprint
    assert run.record.teacher is not None
    assert list(run.record.teacher.first_choice_weight) == list(demo.TEMPERATURES)
    assert len(run.metrics) == SMALL.few_labels
    assert set(run.metrics[0].students["KD"].terms) == {"ce", "kd"}
    assert run.results is not None
    assert run.results.students["CE"].parameters == 2410
    assert [p.done for p in told] == sorted(p.done for p in told)
    assert told[-1].done == told[-1].total


def test_a_demo_that_was_stopped_goes_on_with_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plackett.experiments.surroundings.commit", lambda: "abc")

    def stop(progress: demo.Progress) -> None:
        if progress.what.startswith("all labels"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        demo.run(tmp_path, seeds=1, size=SMALL, watch=stop)
    assert "'interrupted'" in read_study(tmp_path).problems[0]
    kept = tmp_path / "150-labels" / "seed-0" / RUN
    written = kept.stat().st_mtime_ns
    demo.run(tmp_path, seeds=1, size=SMALL)
    assert read_study(tmp_path).problems == []
    assert kept.stat().st_mtime_ns == written
    demo.run(tmp_path, seeds=1, size=SMALL)  # a finished one begins anew
    assert kept.stat().st_mtime_ns > written


@pytest.mark.parametrize("after", [0.0, 0.6])
def test_a_demo_killed_at_any_moment_runs_again(tmp_path: Path, after: float) -> None:
    code = (
        "import pathlib, sys; from plackett.experiments import demo\n"
        "demo.run(pathlib.Path(sys.argv[1]), seeds=2, size=demo.Size(teacher=2, few_labels=40, all_labels=40))"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "killed")], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob(METRICS)) and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.01)
    time.sleep(after)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert read_study(tmp_path / "killed").problems  # readable, and says that it is not finished
    demo.run(tmp_path / "killed", seeds=2, size=SMALL)
    demo.run(tmp_path / "whole", seeds=2, size=SMALL)
    assert files(tmp_path / "killed") == files(tmp_path / "whole")
    assert read_study(tmp_path / "killed").problems == []


def test_a_student_that_breaks_is_told_of_and_the_rest_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(demo.METHODS, "broken", {"ce": 1.0, "kd": {"weight": 1e38, "temperature": 1e3}})
    demo.run(tmp_path, seeds=1, size=SMALL)
    run = read_run(tmp_path / "150-labels" / "seed-0")
    assert run.results is not None
    assert list(run.results.students) == [name for name in demo.METHODS if name != "broken"]
    assert run.problems == [run.results.stopped["broken"]]
    assert "Student 'broken' stopped" in run.problems[0]


def test_no_seeds_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 1 seed, not 0"):
        demo.run(tmp_path, seeds=0)
