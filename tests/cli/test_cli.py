"""The command as a person meets it: a process with an output and an exit code."""

from __future__ import annotations

import io
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from rich.console import Console

import plackett
from plackett.cli import demo, letters
from plackett.cli.progress import Bar, say
from plackett.cli.tables import comparison
from plackett.experiments.records import METRICS, RESULTS
from plackett.experiments.statistics import summary
from plackett.experiments.study import read_study
from plackett.experiments.tables import Row, rows
from plackett.losses import names
from tests.experiments.runs import write_run

COMMAND = [sys.executable, "-c", "from plackett.cli import main; main()"]


def begin(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """A command that Ctrl-C ends, although who started the tests, in the background say, may be deaf to it."""
    return subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def run(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, cwd=cwd, env={**os.environ, **environment}, timeout=120
    )


def test_the_entry_point_is_installed() -> None:
    found = shutil.which("plackett", path=str(Path(sys.executable).parent))
    assert found is not None
    done = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"plackett {plackett.__version__}\n"


def _processor() -> float:
    """Seconds that ended children of this process have computed."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_help_answers_in_half_a_second_without_torch() -> None:
    seconds = []
    for _ in range(3):  # of the processor: what else runs on the machine does not count
        begun = _processor()
        done = run("--help")
        seconds.append(_processor() - begun)
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


@pytest.mark.parametrize(("verb", "words"), [
    ("landscape", "[default: dist, kd, pld]"), ("landscape", "[default: the teacher's first]"),
    ("tune", "[default: the recipe's]"), ("tune", "[default: runs/RECIPE-tune]"), ("sweep", "[default: the recipe's]"),
])  # fmt: skip
def test_what_help_says_in_brackets_is_shown(verb: str, words: str) -> None:
    shown = run(verb, "--help").stdout.translate({ord(frame): " " for frame in "│╭╮╰╯─"})
    assert words in " ".join(shown.split())


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
    (["losses", "PLDD"], "There is no loss named 'PLDD'; did you mean 'pld'? (choices: "),
    (["report", ".", "--out", "."], ". is a folder: name a file with --out, such as report.html.\n"),
    (["demo", "--out", "/dev/null"], "/dev/null is not a folder, so nothing can be written to /dev/null: "),
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
    for out in ("file", "file/demo"):
        done = run("demo", "--tiny", "--seeds", "1", "--out", out, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr == (f"file is not a folder, so nothing can be written to {out}: name a folder with --out.\n")
    done = run("report", ".", "--out", "file/page.html", cwd=tmp_path)
    assert done.stderr == "file is not a folder, so nothing can be written to file: name a folder with --out.\n"


@pytest.mark.parametrize("arguments", [["--seeds", "0"], ["--seeds", "-1"], ["--out", "/dev/null"], ["--seeds", "x"]])
def test_what_cannot_be_is_said_before_the_banner_and_before_torch(arguments: list[str]) -> None:
    code = (
        f"import sys\ntry:\n    from plackett.cli import main; main(['demo', *{arguments!r}])\n"
        "finally:\n    print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "False\n")


@pytest.mark.parametrize("verb", ["demo", "losses", "report"])
def test_a_mistake_names_the_help_of_its_own_verb(verb: str) -> None:
    done = run(verb, "--sedes", "3")
    assert re.fullmatch(rf"No such option: --sedes( \([^\n]*\))?[.?] See plackett {verb} --help\.\n", done.stderr)
    assert run("dmeo").stderr.endswith(" See plackett --help.\n")
    if verb == "demo":
        assert re.fullmatch(r"Invalid value for '--seeds': [^\n]+ integer[^\n]*\. See plackett demo --help\.\n",
                            run("demo", "--seeds", "x").stderr)  # fmt: skip


@pytest.mark.parametrize("arguments", [[], ["--debug"]])
def test_without_a_verb_it_prints_its_help_and_no_more(arguments: list[str]) -> None:
    done, asked = run(*arguments), run("--help")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", asked.stdout)


@pytest.mark.parametrize(
    ("name", "card"), [("PLD", "pld"), ("PLDLoss", "pld"), ("Cross_Entropy", "ce"), ("vidloss", "vid")]
)
def test_a_loss_is_known_by_its_functions_and_modules_name_in_either_case(name: str, card: str) -> None:
    assert run("losses", name).stdout.startswith(f"{card}: ")


@pytest.mark.parametrize(("module", "extra"), [
    ("sklearn", "demo"), ("scipy", "demo"), ("jinja2", "report"), ("matplotlib", "report"),
])  # fmt: skip
def test_a_missing_extra_is_said_before_the_work(tmp_path: Path, module: str, extra: str) -> None:
    code = f"import sys; sys.modules[{module!r}] = None; from plackett.cli import main; main(['demo', '--tiny'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith(f" needs {module!r}, which is not installed: pip install 'plackett[{extra}]'.\n")
    assert done.stdout == ""
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("arguments", [[], ["losses"], ["losses", "pld"], ["nonsense"], ["demo", "--tiny"]])
def test_a_pipe_that_closes_early_ends_the_command_quietly(tmp_path: Path, arguments: list[str]) -> None:
    """141, as of any program that a pipe's reader leaves: with 0 an unfinished demo would look finished."""
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": writer, "stderr": writer if arguments == ["nonsense"] else subprocess.PIPE}
    try:
        done = subprocess.run([*COMMAND, *arguments], **streams, cwd=tmp_path, timeout=60)
    finally:
        os.close(writer)
    assert done.returncode == 141
    assert not done.stderr


def test_a_demo_whose_reader_leaves_says_that_it_is_not_finished(tmp_path: Path) -> None:
    child = begin("demo", "--tiny", cwd=tmp_path)
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.readline().startswith("Handwritten digits")
    child.stdout.close()
    assert (child.wait(60), child.stderr.read()) == (141, "")
    child.stderr.close()
    study = tmp_path / "runs/demo/experiment.json"
    assert not study.exists() or '"finished"' not in study.read_text()


def test_a_terminal_without_greek_reads_the_same_in_plain_letters(tmp_path: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    done = run("demo", "--tiny", "--seeds", "2", "--out", "τ é", cwd=tmp_path, **plain)
    assert done.returncode == 0, done.stderr
    assert "?" not in done.stdout
    for words in ("PLD tau=4", " +/- ", "at tau=4", "Report"):
        assert words in done.stdout
    assert re.search(r"  [-+]\d+\.\d \[-\d+\.\d, \+\d+\.\d\]   cannot tell\n", done.stdout)
    table = done.stdout.split("Few labels")[1].split("Two seeds")[0].splitlines()
    ends = {line.index("cannot tell") for line in table if "cannot tell" in line}
    assert len(ends) == 1, "the columns are laid out after the letters are known"
    assert "plackett demo --out 'τ é' --seeds 2" in (tmp_path / "τ é" / "experiment.json").read_text("utf-8")
    assert run(**plain).stdout.isascii()


@pytest.mark.parametrize(("encoding", "spelled"), [
    ("ascii", "PLD tau=1: -17.9 +/- 0.2, 3 x 4 - Omega, e... ?"),
    ("latin-1", "PLD tau=1: -17.9 ± 0.2, 3 × 4 - Omega, é... ?"),
    ("utf-8", "PLD τ=1: −17.9 ± 0.2, 3 × 4 – Ω, é… 字"),
])  # fmt: skip
def test_only_what_an_encoding_lacks_is_spelled(encoding: str, spelled: str) -> None:
    text = "PLD τ=1: −17.9 ± 0.2, 3 × 4 – Ω, é… 字"
    assert letters.spell(text, encoding) == spelled
    assert text.encode(encoding, letters.SPELL).decode(encoding) == spelled
    assert b"\xcf".decode("ascii", "surrogateescape").encode(encoding, letters.SPELL) == b"\xcf"


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
        "Better and worse allow for comparing all methods of a table at once",
        "One split of the pictures and one teacher",
        "runs/demo/report.html",
        "In a training loop of your own:",
        "plackett.PLDLoss(temperature=4.0)",
        "With your own data, a folder a class:",
    ]
    place = 0
    for words in order:
        assert words in done.stdout[place:], words
        place = done.stdout.index(words, place)
    assert done.stdout.endswith("\n" + textwrap.indent(demo.COMMAND, "    ") + "\n")
    assert len(demo.DROP_IN.splitlines()) == 4
    assert "\x1b" not in done.stdout
    assert all(line == line.rstrip() for line in done.stdout.splitlines())
    report = (tmp_path / "runs/demo/report.html").read_text()
    assert report.count("<h2") == 10
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
    say(console, comparison(console, "[b]", [one], "[95]"), "[link]")
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(words in text for words in ("[red]x[/red]", "[b]", "difference to [95] [95 %]", "[link]"))


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [24, 40, 60, 70, 80, 200])
def test_no_terminal_is_so_narrow_that_a_figure_is_cut(tmp_path: Path, width: int, encoding: str) -> None:
    for seed, accuracy in enumerate((0.1, 0.2, 0.9)):
        write_run(tmp_path / str(seed), seed, {"CE": 0.9, "PLD τ=4": accuracy, "DIST": 0.5})
    table = rows(read_study(tmp_path).all_runs, "CE")
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, width=width)
    say(console, comparison(console, "By hand", table, "CE"))
    file.seek(0)
    text = file.read()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "..." not in text
    words = " ".join(text.split())
    for row in table[1:]:
        assert row.difference is not None
        for figure in (row.method, row.accuracy.text(100), row.difference.text(100), "cannot tell"):
            assert letters.spell(figure, encoding) in words
    assert ("(n = 3)" in text) == (width <= 70)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_demo_stopped_in_the_middle_runs_again(tmp_path: Path, number: signal.Signals, code: int) -> None:
    begun = begin("demo", cwd=tmp_path)
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


@pytest.mark.parametrize("verb", ["demo", "losses"])
def test_ctrl_c_is_answered_from_the_first_moment_on(tmp_path: Path, verb: str) -> None:
    """Also while NumPy and torch are loaded, which do not let a KeyboardInterrupt through at every place."""
    for seconds in (0.2, 0.35, 0.5, 0.65, 0.8):
        child = begin(verb, cwd=tmp_path)
        time.sleep(seconds)
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=30)
        done = verb == "losses" and child.returncode == 0  # a fast machine
        assert done or (child.returncode == 130 and error.startswith("Stopped.")), (seconds, error)


def test_a_command_is_written_down_as_it_must_be_typed(tmp_path: Path) -> None:
    done = run("demo", "--tiny", "--seeds", "1", "--out", "a b;c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    command = read_study(tmp_path / "a b;c").record.command
    assert shlex.split(command) == ["plackett", "demo", "--out", "a b;c", "--seeds", "1"]


def test_report_of_runs_that_exist(tmp_path: Path) -> None:
    write_run(tmp_path / "r", 0, {"CE": 0.8, "PLD": 0.9})
    done = run("report", str(tmp_path), "--out", str(tmp_path / "page.html"))
    assert done.stdout == f"Report: {tmp_path / 'page.html'}\nPlots and tables: {tmp_path / 'page-files'}\n"
    assert re.search("<title>By hand</title>", (tmp_path / "page.html").read_text())


def test_a_report_of_several_folders_and_of_nothing_beside_it(tmp_path: Path) -> None:
    for seed in range(3):
        write_run(tmp_path / "runs" / str(seed), seed, {"CE": 0.8, "PLD": 0.9})
    done = run("report", *(str(tmp_path / "runs" / str(seed)) for seed in range(3)), "--no-files")
    assert done.stdout == f"Report: {tmp_path / 'runs' / 'report.html'}\n"
    assert "Distillation helped. PLD is 10.0 points higher than CE" in (tmp_path / "runs" / "report.html").read_text()
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["0", "1", "2", "report.html"]


@pytest.mark.slow
def test_the_demo_takes_less_than_a_minute_of_processor_time(tmp_path: Path) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run("demo", cwd=tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 60
