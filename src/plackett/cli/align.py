"""`plackett align`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plackett.cli.letters import spell
from plackett.cli.stopped import at_once
from plackett.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from plackett.experiments.transfer import Alignment

FORMATS = ("text", "markdown", "csv")


def align(
    first: Annotated[str, typer.Argument(help="Run folders' folder; or one network: FILE, FILE:NAME or RUN:NAME.")],
    second: Annotated[str | None, typer.Argument(help="Another network, to compare with the first.")] = None,
    form: Annotated[str, typer.Option("--format", help="text, markdown or csv.")] = "text",
) -> None:
    """How alike two networks' predictions are; of run folders, every student to its teacher."""
    if form not in FORMATS:
        raise InputError(f"There is no format {form!r}; {did_you_mean(form, FORMATS)}.")
    parts = _of_runs(Path(first), form) if second is None else [_of_two(first, second, form)]
    print(spell("\n\n".join(parts), sys.stdout.encoding or "utf-8"))


def _of_two(first: str, second: str, form: str) -> str:
    from plackett.experiments import predictions

    one, other = predictions.one(first), predictions.one(second)
    if one.logits.shape != other.logits.shape or (one.targets != other.targets).any():
        raise InputError(
            f"{first} and {second} are not of the same pictures: {list(one.logits.shape)} and "
            f"{list(other.logits.shape)} logits, and the labels must be equal, in the same order."
        )
    with at_once():
        import torch

        from plackett.experiments.alignment import align as compute

    found = compute(*map(torch.from_numpy, (one.logits, other.logits, one.targets)))
    title = f"{other.title} against {one.title} (who stands for the teacher below), {found.pictures:,} pictures"
    return _show(title, {other.title: [found]}, None, form)


def _of_runs(folder: Path, form: str) -> list[str]:
    if not folder.is_dir() and (folder.is_file() or Path(str(folder).rpartition(":")[0] or folder).exists()):
        raise InputError(f"{folder} is one network; name another one to compare it with, or a folder of runs alone.")
    from plackett.experiments.study import read_study
    from plackett.experiments.transfer import gather

    study = read_study(folder)
    parts = []
    for case in study.record.cases:
        runs = study.runs[case.group]
        if found := gather(runs):
            few = next(iter(found.values()))
            seeds = len({run.record.seed for run in runs})
            title = f"{case.title}: students against their teacher, {few[0].pictures:,} test pictures, seeds: {seeds}"
            parts.append(_show(title, found, runs[0].record.data.classes, form))
    if not parts:
        raise InputError(
            f"No finished run in {folder} says how alike student and teacher are: the runs have no teacher, or an "
            "older plackett made them. Name two networks instead: plackett align RUN:NAME RUN:NAME."
        )
    return parts


def _show(title: str, found: dict[str, list[Alignment]], names: list[str] | None, form: str) -> str:
    from plackett.experiments import plain
    from plackett.experiments.transfer import FIGURES, largest_changes, table

    if form == "csv":
        return plain.comma_separated(table(found)).rstrip("\n")
    head = ["figure", *found]
    rows = [head, *([figure.title, *(figure.text(each) for each in found.values())] for figure in FIGURES)]
    shape = plain.markdown if form == "markdown" else plain.aligned
    some = next(iter(found.values()))[0]
    notes = [
        f"Teacher: accuracy {100 * some.teacher_accuracy:.1f} %, expected calibration error "
        f"{100 * some.teacher_calibration.ece:.1f} %, mean probability of the label "
        f"{some.teacher_first_choice_weight:.3f}."
    ]
    if some.ranked < some.pictures:
        notes.append(f"Orders are of {some.ranked:,} evenly spaced pictures.")
    for method, each in found.items():
        changed = largest_changes(each, 3)
        said = ", ".join(f"{names[n] if names else n} {100 * a:.0f} -> {100 * b:.0f} %" for n, a, b in changed)
        notes.append(f"Largest changes of a class, {method}: {said}.")
    return "\n\n".join([title, shape(rows), "\n".join(notes)])
