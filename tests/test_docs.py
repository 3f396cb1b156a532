"""Every code block of README and docs is run: python blocks as written, commands as far as a test may go."""

from __future__ import annotations

import csv
import doctest
import pathlib
import re
import shlex
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

from plackett import losses
from plackett.experiments import cells
from tests.experiments.test_cells import cell
from tools import cards, cifar100, commands, costs, speed

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# What a page shows rather than runs; anything else needs a rule below.
SHOWN = {"text", "yaml", "toml", "html", "mermaid", "bibtex"}


class Block(NamedTuple):
    language: str
    code: str
    line: int


def blocks(page: pathlib.Path) -> list[Block]:
    text = page.read_text()
    found = re.finditer(r"^```(\w*)[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(m.group(1), m.group(2), text[: m.start()].count("\n") + 2) for m in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_blocks_run_from_top_to_bottom(page: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.language in ("python", "pycon") and ">>>" in block.code:
            test = doctest.DocTestParser().get_doctest(block.code, names, where, str(page), block.line)
            flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            failed = doctest.DocTestRunner(optionflags=flags).run(test, clear_globs=False)
            assert failed.failed == 0, where
            names |= test.globs
        elif block.language == "python":
            exec(compile(block.code, where, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_block_is_of_a_kind_that_is_checked(page: pathlib.Path) -> None:
    kinds = {block.language for block in blocks(page)}
    assert kinds <= SHOWN | {"python", "pycon", "bash"}, f"{page.name} has a block that nothing checks"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_exist(page: pathlib.Path) -> None:
    for block in blocks(page):
        if block.language == "bash":
            for line in block.code.replace("\\\n", " ").splitlines():
                command = shlex.split(line, comments=True)
                if command:
                    check_command(command)


def check_command(command: list[str]) -> None:
    program, *arguments = command
    if program == "make":
        targets = [a for a in arguments if "=" not in a]
        makefile = (ROOT / "Makefile").read_text()
        assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets), command
    elif program == "pip":
        project = (ROOT / "pyproject.toml").read_text()
        for extra in re.findall(r"\[([\w,]+)\]", " ".join(arguments)):
            assert all(re.search(rf"^{name} = \[", project, re.MULTILINE) for name in extra.split(",")), command
    elif program == "plackett":
        verbs = [a for a in arguments if not a.startswith("-")][:1]
        # --help of the verb: it exists, and so do the options that the page shows
        run = subprocess.run(
            [sys.executable, "-m", "plackett", *verbs, "--help"], capture_output=True, text=True, cwd=ROOT
        )
        assert run.returncode == 0, run.stderr
        for option in (a.split("=")[0] for a in arguments if a.startswith("--")):
            assert option in run.stdout, f"{command}: no {option}"
    elif program == "python":
        assert arguments[0] == "-m", command
        module = ROOT.joinpath(*arguments[1].split("."))
        known = module.with_suffix(".py").exists() or module.is_dir() or arguments[1] in ("venv", "pytest")
        assert known, command
    else:
        assert program in ("git", "cd", "pytest", ".venv/bin/plackett", "."), f"no rule checks {command}"


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text().split("nav:")[1]
    listed = re.findall(r": (\S+\.md)$", menu, re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))


def test_images_that_pages_show_are_there() -> None:
    for page in PAGES:
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} shows {target}"


def test_the_cards_are_fresh() -> None:
    assert cards.PATH.read_text() == cards.text(), "a card changed: run `make stubs`"


def test_the_readmes_costs_are_the_committed_results() -> None:
    assert costs.README.read_text() == costs.text(), "the results changed: run `make stubs`"


def test_the_readmes_commands_are_all_commands() -> None:
    assert commands.README.read_text() == commands.text(), "a command or a page changed: run `make stubs`"
    run = subprocess.run([sys.executable, "-m", "plackett", "--help"], capture_output=True, text=True, check=True)
    listed = re.findall(r"^│ (\w+)  ", run.stdout.split("Commands")[1], re.MULTILINE)
    assert set(listed) == set(commands.commands())
    assert all(line.endswith(".") for line in commands.commands().values())


def test_the_speed_of_training_is_the_committed_result() -> None:
    assert speed.PAGE.read_text() == speed.text(), "the results changed: run `make stubs`"


def test_the_committed_costs_of_the_cpu_are_what_is_promised() -> None:
    """Over the published listing, two threads: times 2 at 128 x 100, times 5 at the others; a third of its memory."""
    with (ROOT / "benchmarks" / "results" / "losses-amd-epyc-2.11.0.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["threads"] for row in rows} == {"2"}

    def ratio(rows_: str, classes: str, column: str) -> float:
        of = {row["loss"]: float(row[column]) for row in rows if (row["rows"], row["classes"]) == (rows_, classes)}
        return of["PLD as published"] / of["PLD"]

    assert ratio("128", "100", "median_ms") >= 2
    for shape in (("128", "1000"), ("2048", "1000"), ("64", "32000")):
        assert ratio(*shape, "median_ms") >= 5, shape
    assert ratio("2048", "1000", "extra_mib") >= 3


def test_the_tables_of_cifar100_are_the_committed_cells(tmp_path: pathlib.Path) -> None:
    assert cifar100.README.read_text() == cifar100.readme(), "the results changed: run `make stubs`"
    assert cifar100.PAGE.read_text() == cifar100.page(), "the results changed: run `make stubs`"
    cells.append(tmp_path / "a.jsonl", [cell("kd", seed, 0.69 + seed / 1000) for seed in range(3)])
    cells.append(tmp_path / "a.jsonl", [cell("pld", seed, 0.70 + seed / 1000) for seed in range(3)])
    made = cifar100.page(tmp_path)
    assert "| pair | verdict |" in made
    assert "| PLD | 70.10 ± 0.10 | 3 |" in made
    assert "](images/cifar100-resnet56-resnet20-to-kd.svg)" in made
    assert "](docs/images/cifar100-resnet56-resnet20-to-kd.svg)" in cifar100.readme(tmp_path)
    assert cifar100.NOTHING not in made


def test_the_readme_names_every_loss() -> None:
    readme = (ROOT / "README.md").read_text()
    missing = [name for name in losses.names() if f"`{name}`" not in readme]
    assert not missing
