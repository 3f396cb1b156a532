"""`plackett distill`: from a trained network and a folder of pictures to a smaller network."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plackett.cli import choices, ready
from plackett.cli.asked_network import ClassesOption, OptionsOption, StudentSightOption, TeacherSightOption, TrustOption
from plackett.cli.check import shown
from plackett.cli.letters import spell
from plackett.cli.reproduce import DeviceOption, MinutesOption, TensorBoardOption
from plackett.cli.stopped import at_once, softly
from plackett.cli.typed import typed
from plackett.errors import InputError, missing_extra

if TYPE_CHECKING:
    from plackett.distilling.asked import Asked
    from plackett.experiments.findings import Findings


def distill(
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...", help="Any key of a recipe, as epochs=50 or objective.pld.temperature=2."
        ),
    ] = None,
    teacher: Annotated[
        str | None, typer.Option(help="timm:NAME, torchvision:NAME, package.module:function, or a saved folder.")
    ] = None,
    student: Annotated[str | None, typer.Option(help="The same; its head is made for the data's classes.")] = None,
    data: Annotated[
        str | None, typer.Option(help="Pictures: a folder a class, with train, val and test above.")
    ] = None,
    objective: Annotated[
        str | None, typer.Option(help="pld, kd, dist, ...; the first is kept, others train beside it. [default: pld]")
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="pictures, small-pictures, or a file of your own (.yaml).")] = None,
    teacher_weights: Annotated[str | None, typer.Option(help="A file, a folder, or pretrained.")] = None,
    teacher_classes: ClassesOption = None,
    teacher_option: OptionsOption = None,
    teacher_sight: TeacherSightOption = None,
    student_weights: Annotated[str | None, typer.Option(help="To begin with: a file, a folder, or pretrained.")] = None,
    student_option: OptionsOption = None,
    student_sight: StudentSightOption = None,
    unlabelled: Annotated[str | None, typer.Option(help="More pictures, without labels.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Which seeds, as 0,1,2 or 0-2. [default: 0]")] = None,
    out: Annotated[Path | None, typer.Option(help="Where all of it goes. [default: runs/DATA]")] = None,
    device: DeviceOption = None,
    workers: Annotated[int | None, typer.Option(min=0, help="Processes that read pictures ahead.")] = None,
    trust_checkpoint: TrustOption = False,
    allow_weak_teacher: Annotated[
        bool, typer.Option("--allow-weak-teacher", help="Go on with a teacher that is near chance.")
    ] = False,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="2 epochs of at most 256 pictures, to see that all works.")
    ] = False,
    tensorboard: TensorBoardOption = False,
    minutes: MinutesOption = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="No report.html at the end.")] = False,
) -> None:
    """Check a teacher, train a small network by it, say with intervals what came out; goes on where it stopped."""
    from plackett.distilling import asked as askings

    given = {
        "teacher": teacher, "student": student, "data": data, "objective": objective,
        "teacher_weights": teacher_weights, "teacher_classes": teacher_classes, "student_weights": student_weights,
        "teacher_options": choices.pairs(teacher_option, "--teacher-option") if teacher_option else None,
        "student_options": choices.pairs(student_option, "--student-option") if student_option else None,
        "teacher_sight": choices.sight(teacher_sight, "--teacher-sight"),
        "student_sight": choices.sight(student_sight, "--student-sight"),
        "unlabelled": unlabelled, "seeds": choices.seeds(seeds),
    }  # fmt: skip
    asked = askings.read(recipe, given, keys or []).whole()
    folder = out or Path("runs") / f"{_called(asked.data)}{'-smoke' if smoke else ''}"
    ready.folder(folder)
    if tensorboard:
        ready.extras("--tensorboard", ["tracking"])
    _run(asked, folder, {
        "device": device, "workers": workers, "trust": trust_checkpoint, "allow_weak": allow_weak_teacher,
        "smoke": smoke, "tensorboard": tensorboard, "minutes": minutes,
    }, report=not no_report)  # fmt: skip


def alone(asked: Asked, folder: Path, options: dict[str, Any]) -> None:
    """The same without a teacher: `plackett train` on a folder of pictures."""
    if not asked.data:
        raise InputError("plackett train needs pictures: --data FOLDER, a folder a class.")
    ready.folder(folder)
    _run(asked, folder, options, report=False)


def _run(asked: Asked, folder: Path, options: dict[str, Any], *, report: bool) -> None:
    from rich.console import Console

    from plackett.cli.progress import Bar
    from plackett.experiments.limit import Limit

    limit = Limit(options.pop("minutes"))

    console = Console(highlight=False)
    with Bar(console) as bar:
        bar.tell("loading torch", 0, 1)
        with at_once():
            from plackett.distilling import outcome
            from plackett.distilling.run import distil
            from plackett.distilling.work import Order, Telling
            from plackett.training import Pause, Paused

        def say(sentence: str) -> None:
            console.print(spell(sentence, console.encoding), markup=False, soft_wrap=True)

        def show(findings: Findings) -> None:
            say(f"\n{shown(findings)}\n")

        pause = Pause()
        order = Order(asked, folder, command=typed(), pause=pause, limit=limit, **options)
        with softly(pause) as how:
            try:
                kept = distil(order, Telling(bar.tell, say), show)
            except Paused as stopped:
                raise how.stopped(f"{stopped}; all of it is saved in {folder}: the same command goes on.") from None
            except KeyboardInterrupt:
                raise how.stopped(
                    f"Stopped. What was saved is in {folder}; the same command goes on from there."
                ) from None
        page = None
        if report and (lacking := ready.lacks("report")) is not None:
            say(f"\nNo report: {missing_extra(lacking, 'report', 'it')}")
        elif report:
            from plackett.report import write

            bar.tell("the report", 1, 1)
            page = write(folder)
    found = outcome.read(folder)
    print(spell("\n" + "\n\n".join([found.title, found.table, *found.sentences]), sys.stdout.encoding or "utf-8"))
    if page is not None:
        print(f"\nReport: {page}")
    if kept is None:
        raise InputError(f"The student that was to be kept did not finish; what can be said of it is in {folder}.")
    named, pictures = shlex.quote(str(kept)), shlex.quote(asked.data)
    if not asked.teacher:
        print(f"\nNetwork: {kept}\n\nTo make a small one of it:")
        print(f"    plackett distill --teacher {named} --student timm:NAME --data {pictures}{_trust(kept)}")
        return
    print(f"Student: {kept}\n\nWhat it costs, and files that others run:")
    taught = f"--teacher {shlex.quote(asked.teacher)}"
    if asked.teacher_weights is not None:
        taught += f" --teacher-weights {shlex.quote(asked.teacher_weights)}"
    if asked.teacher_classes is not None:
        taught += f" --teacher-classes {shlex.quote(asked.teacher_classes)}"
    print(f"    plackett evaluate {named} {taught} --data {pictures}{_trust(kept, asked.teacher)}")
    print(f"    plackett export {named} --data {pictures} --out {shlex.quote(str(folder / 'export'))}{_trust(kept)}")


def _trust(*named: Path | str) -> str:
    """What must be said besides where one of these folders names code of the user's own."""
    from plackett.models.packed import runs_code

    return " --trust-checkpoint" if any(runs_code(Path(each)) for each in named) else ""


def _called(data: str) -> str:
    """A folder's name for these pictures."""
    name = Path(data.partition(":")[2] or data).name
    return name.removesuffix(".zip") or "distill"
