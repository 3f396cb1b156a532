"""`plackett check`: has this teacher something to teach, on these pictures, through this student's eyes?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plackett.cli import asked_network as asked
from plackett.cli import choices
from plackett.cli.asked_network import ClassesOption, OptionsOption, StudentSightOption, TeacherSightOption, TrustOption
from plackett.cli.letters import spell
from plackett.cli.stopped import Stopped, at_once
from plackett.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from plackett.experiments.findings import Findings

FORMATS, SPLITS = ("text", "json"), ("train", "val", "test")


def check(
    teacher: Annotated[str, typer.Option(help="timm:NAME, torchvision:NAME, package.module:function, saved folder.")],
    data: Annotated[Path, typer.Option(help="A folder or a zip file of pictures, a folder a class.")],
    teacher_weights: Annotated[
        str | None, typer.Option("--teacher-weights", "--weights", help="A file, a folder, or pretrained.")
    ] = None,
    teacher_classes: ClassesOption = None,
    teacher_option: OptionsOption = None,
    teacher_sight: TeacherSightOption = None,
    student: Annotated[str | None, typer.Option(help="The student: the teacher then reads its pictures too.")] = None,
    student_sight: StudentSightOption = None,
    split: Annotated[str, typer.Option(help="train, val or test.")] = "val",
    limit: Annotated[int | None, typer.Option(help="At most so many pictures, evenly spaced.")] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes that read pictures ahead.")] = 0,
    batch_size: Annotated[int, typer.Option(min=1, help="Pictures at a time.")] = 64,
    device: Annotated[str | None, typer.Option(help="cpu or cuda. [default: cuda where there is one]")] = None,
    trust_checkpoint: TrustOption = False,
    allow_weak_teacher: Annotated[
        bool, typer.Option("--allow-weak-teacher", help="No failure where it is near chance.")
    ] = False,
    form: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """Look at pictures through a teacher before it teaches: accuracy, class order, calibration, temperature."""
    for given, known, what in ((form, FORMATS, "format"), (split, SPLITS, "split")):
        if given not in known:
            raise InputError(f"There is no {what} {given!r}; {did_you_mean(given, known)}.")
    options = choices.pairs(teacher_option or [], "--teacher-option")
    sights = [choices.sight(teacher_sight, "--teacher-sight"), choices.sight(student_sight, "--student-sight")]

    from rich.console import Console

    from plackett.cli.progress import Bar

    with Bar(Console(stderr=True, highlight=False)) as bar:
        bar.tell("loading torch", 0, 1)
        with at_once():
            from plackett.experiments import checked

        where = asked.device_of(device)
        try:
            found = checked.check(
                checked.Order(
                    teacher=teacher,
                    data=data,
                    weights=teacher_weights,
                    classes=teacher_classes,
                    options=options,
                    sight=sights[0],
                    student=student,
                    student_sight=sights[1],
                    split=split,
                    limit=limit,
                    workers=workers,
                    size=batch_size,
                    device=where,
                    trust=trust_checkpoint,
                ),
                bar.tell,
            )
        except KeyboardInterrupt:
            raise Stopped("Stopped. Nothing was written; the same command looks again.") from None
    text = found.model_dump_json(indent=2) if form == "json" else shown(found)
    print(spell(text, sys.stdout.encoding or "utf-8"))
    found.require(allow_weak=allow_weak_teacher)


def shown(found: Findings) -> str:
    """The findings as a person reads them; `distill` shows the same."""
    import textwrap

    from plackett.experiments import plain

    more = [
        f"{n:,} {words}"
        for n, words in (
            (found.not_offered, "of a class that it does not offer"),
            (found.unlabelled, "without a label"),
            (found.unreadable, "unreadable"),
        )
        if n
    ]
    left_out = f" (left out: {', '.join(more)})" if more else ""
    rows = [["the teacher is shown the pictures", "top-1, %", "top-5, %"]]
    rows += [
        [look.words, f"{100 * look.top1:.1f}", "" if look.top5 is None else f"{100 * look.top5:.1f}"]
        for look in found.looks
    ]
    weights = ", ".join(f"{weight:.3f} at τ={tau:g}" for tau, weight in found.first_choice_weight.items())
    how = "through the student's pictures" if found.through_student.way == "student" else "shown its own way"
    paragraphs = [
        f"Teacher: {found.teacher}, {found.parameters:,} parameters.{_student(found)}",
        f"Pictures: {found.pictures:,} of {found.classes} classes, {found.data} ({found.split}){left_out}. "
        f"{found.matching}",
        plain.aligned(rows),
        f"What it says {how}: expected calibration error {100 * found.calibration.ece:.1f} %, "
        f"confidently wrong (a wrong class above 50 %) on {100 * found.surely_wrong:.1f} % of the pictures.",
        f"Mean first-choice weight, the share of PLD that the label itself gets: {weights}.",
        f"Suggested temperature: {found.temperature:g}, the highest of these at which the label keeps half."
        if max(found.first_choice_weight.values()) >= 0.5
        else f"Suggested temperature: {found.temperature:g}; the label keeps less than half at every one of these.",
        *(f"Note: {note}" for note in found.notes),
        *(f"Warning: {warning}" for warning in found.warnings),
    ]
    return "\n\n".join(
        p if "\n" in p else textwrap.fill(p, 100, break_long_words=False, break_on_hyphens=False) for p in paragraphs
    )


def _student(found: Findings) -> str:
    return "" if found.student is None else f" Student: {found.student}, {found.student_parameters:,} parameters."
