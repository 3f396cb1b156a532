"""The command as a person meets it: a process with an output and an exit code."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

import plackett
from plackett.cli.progress import Bar, say
from plackett.cli.tables import comparison
from plackett.experiments.records import METRICS, RESULTS
from plackett.experiments.statistics import summary
from plackett.experiments.tables import Row
from plackett.losses import names
from tests.experiments.runs import write_run

COMMAND = [sys.executable, "-c", "from plackett.cli import main; main()"]


def run(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, cwd=cwd, env={**os.environ, **environment}, timeout=120
    )


def test_the_entry_point_is_installed() -> None:
    found = shutil.which("plackett", path=str(Path(sys.executable).parent))
    assert found is not None
    done = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"plackett {plackett.__version__}\n"


def test_help_answers_in_half_a_second_without_torch() -> None:
    seconds = []
    for _ in range(3):  # the least of three: a busy machine can only add
        begun = time.perf_counter()
        done = run("--help")
        seconds.append(time.perf_counter() - begun)
        assert done.returncode == 0
        for verb in ("demo", "losses", "report"):
            assert verb in done.stdout
    assert min(seconds) < 0.5
    code = (
        "import sys\ntry:\n    from plackett.cli import main; main(['--help'])\n"
        "finally:\n    print({'torch', 'pydantic', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.endswith("set()\n")


@pytest.mark.parametrize("arguments", [["demo", "--help"], ["losses", "-h"], ["report", "--help"]])
def test_every_verb_explains_itself(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_losses_lists_every_loss_and_shows_a_card() -> None:
    listed = run("losses")
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines() if line][: len(names())] == list(names())
    card = run("losses", "pld")
    assert card.stdout == plackett.losses.card("pld").text("pld") + "\n"


@pytest.mark.parametrize(("arguments", "sentence"), [
    (["losses", "pdl"], "There is no loss named 'pdl'; did you mean 'pld'? (choices: "),
    (["report", "no/such/folder"], "There is no run folder no/such/folder."),
    (["report", "."], "There is no run.json in or below .: that is not a run folder."),
    (["demo", "--seeds", "0"], "The demo needs at least 1 seed, not 0."),
    (["demo", "--sedes", "3"], "No such option: --sedes"),
    (["dmeo"], "No such command 'dmeo'."),
    (["report"], "Missing argument "),
])  # fmt: skip
def test_a_mistake_is_one_sentence_and_exit_code_2(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(sentence)
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["--debug", "losses", "pdl"], ["losses", "pdl", "--debug"]])
def test_debug_shows_the_traceback(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert "InputError: There is no loss named 'pdl'" in done.stderr


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("demo", "--tiny", "--seeds", "1", "--out", "file/demo", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "Not a directory: file/demo.\n"


@pytest.mark.parametrize(("module", "extra"), [("sklearn", "demo"), ("jinja2", "report"), ("matplotlib", "report")])
def test_a_missing_extra_is_said_before_the_work(tmp_path: Path, module: str, extra: str) -> None:
    code = f"import sys; sys.modules[{module!r}] = None; from plackett.cli import main; main(['demo', '--tiny'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith(f" needs {module!r}, which is not installed: pip install 'plackett[{extra}]'.\n")
    assert "seed 1" not in done.stdout
    assert not (tmp_path / "runs").exists()


def test_a_pipe_that_closes_early_and_a_terminal_without_greek() -> None:
    done = subprocess.run(f'"{sys.executable}" -c "from plackett.cli import main; main()" losses | head -1',
                          shell=True, capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert run("losses", "pld", PYTHONIOENCODING="ascii").returncode == 0


def test_the_demo_says_everything_in_its_order(tmp_path: Path) -> None:
    done = run("demo", "--tiny", "--seeds", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    order = [
        "Handwritten digits",
        "150 labels, seed 1 of 2: ",
        "s left",
        "all labels, seed 2 of 2: ",
        "Few labels: 150 pictures",
        "difference to CE [95 %]",
        "PLD τ=4",
        "The teacher has 301,066 parameters and ",
        "at τ=4",
        "All labels: 1,078 pictures",
        "PLD τ=4",
        "CE",
        "runs/demo/report.html",
        "plackett.PLDLoss(temperature=4.0)",
        "not in this version",
    ]
    place = 0
    for words in order:
        assert words in done.stdout[place:], words
        place = done.stdout.index(words, place)
    assert "\x1b" not in done.stdout
    assert all(line == line.rstrip() for line in done.stdout.splitlines())
    report = (tmp_path / "runs/demo/report.html").read_text()
    assert report.count("<h2") == 7
    assert ">plackett demo --seeds 2<" in report


def test_a_terminal_gets_a_progress_bar_and_a_file_gets_lines() -> None:
    def shown(terminal: bool) -> str:
        console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
        with Bar(console) as bar:
            for done in range(5):
                bar.tell("first" if done < 3 else "second", done, 4)
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    assert "━" in shown(True)
    assert re.fullmatch(r"  first\n  second: 75 % done, about \d+ s left\n", shown(False))


def test_names_that_look_like_markup_are_printed_as_they_are() -> None:
    console = Console(file=io.StringIO(), width=120)
    one = Row("[red]x[/red]", summary([0.5]), None, None, summary([0.5]), None, summary([0.1]), {0: 0.5})
    say(console, comparison("[b]", [one], "[95]"), "[link]")
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(words in text for words in ("[red]x[/red]", "[b]", "difference to [95] [95 %]", "[link]"))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_demo_stopped_in_the_middle_runs_again(tmp_path: Path, number: signal.Signals, code: int) -> None:
    begun = subprocess.Popen(
        [*COMMAND, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob(METRICS)) and time.monotonic() < deadline:
        time.sleep(0.05)
    begun.send_signal(number)
    _, error = begun.communicate(timeout=30)
    assert begun.returncode == code
    if number == signal.SIGINT:
        assert error.strip() == "Stopped. What was finished is in runs/demo; the same command does the rest."
        return
    done = run("demo", "--tiny", "--seeds", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.rglob(RESULTS))) == 2
    assert 'id="problems"' not in (tmp_path / "runs/demo/report.html").read_text()


def test_report_of_runs_that_exist(tmp_path: Path) -> None:
    write_run(tmp_path / "r", 0, {"CE": 0.8, "PLD": 0.9})
    done = run("report", str(tmp_path), "--out", str(tmp_path / "page.html"))
    assert done.stdout == f"Report: {tmp_path / 'page.html'}\n"
    assert re.search("<title>By hand</title>", (tmp_path / "page.html").read_text())


@pytest.mark.slow
def test_the_demo_takes_less_than_a_minute_of_processor_time(tmp_path: Path) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run("demo", cwd=tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 60
