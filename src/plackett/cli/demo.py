"""`plackett demo`."""

from __future__ import annotations

import os
import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plackett.cli import ready
from plackett.cli.stopped import Stopped, at_once
from plackett.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from plackett.experiments.study import Study

OUT, SEEDS = Path("runs/demo"), 5

ALLOWANCE = (
    "Better and worse allow for comparing all methods of a table at once; an interval stands for itself alone. "
    "One split of the pictures and one teacher are behind all of it."
)
OWN_LOOP = "In a training loop of your own:"
DROP_IN = """\
loss = plackett.PLDLoss(temperature=4.0)
with torch.no_grad():
    teacher_logits = teacher(images)
loss(student(images), teacher_logits, labels).backward()"""
OWN_DATA = "With your own data, a folder a class:"
COMMAND = """\
plackett distill --data FOLDER --teacher timm:NAME --teacher-weights FILE \\
                 --student timm:mobilenetv4_conv_small --objective pld,ce"""
OWN = ((OWN_LOOP, DROP_IN), (OWN_DATA, COMMAND))


def demo(
    out: Annotated[Path, typer.Option(help="Where the runs and the report go.")] = OUT,
    seeds: Annotated[int, typer.Option(help="How many seeds every objective is trained with.")] = SEEDS,
    tiny: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Distil a small network on real digits, in under a minute, and write a report."""
    if seeds < 1:
        raise InputError(f"The demo needs at least 1 seed, not {seeds}.")
    ready.folder(out)
    ready.extras("plackett demo", ["demo"])
    ready.extras("The report", ["report"])

    from rich.console import Console

    from plackett.cli.progress import Bar, say

    console = Console(highlight=False)
    say(
        console,
        "Handwritten digits (scikit-learn, offline): a big teacher, a small student, six objectives, "
        f"{seeds} seed{'s' if seeds != 1 else ''} each.",
    )
    with Bar(console) as bar:
        bar.tell("loading torch", 0, 1)
        with at_once():
            from plackett.experiments import demo as experiment
            from plackett.report import need
            from plackett.report import write as write_report

            need("sklearn.datasets", "demo", "plackett demo")
            need("jinja2"), need("matplotlib")

        def watch(progress: experiment.Progress) -> None:
            bar.tell(progress.what, progress.done, progress.total)

        options = [*(["--out", str(out)] if out != OUT else []), *(["--seeds", str(seeds)] if seeds != SEEDS else [])]
        size = experiment.TINY if tiny else experiment.Size()
        try:
            # as it is typed, also where the locale cannot read it
            command = os.fsencode(shlex.join(["plackett", "demo", *options])).decode("utf-8", "replace")
            experiment.run(out, seeds=seeds, size=size, command=command, watch=watch)
        except KeyboardInterrupt:
            raise Stopped(f"Stopped. What was finished is in {out}; the same command does the rest.") from None
    page = write_report(out)

    from plackett.experiments.study import read_study

    _show(console, read_study(out), page)


def _show(console: Console, study: Study, page: Path) -> None:
    from rich.console import RenderableType
    from rich.padding import Padding

    from plackett.cli.letters import spell
    from plackett.cli.progress import say
    from plackett.cli.tables import comparison
    from plackett.experiments.tables import rows, verdict

    record = study.record
    parts: list[RenderableType] = [""]
    for place, case in enumerate(record.cases):
        table = rows(study.runs[case.group], record.baseline)
        parts.append(comparison(console, case.title, table, record.baseline))
        parts.append(Padding(spell(verdict(table, record.baseline), console.encoding), (0, 2, 1, 2)))
        teacher = study.all_runs[0].record.teacher
        if place == 0 and teacher is not None:
            weights = ", ".join(f"{weight:.3f} at τ={tau:g}" for tau, weight in teacher.first_choice_weight.items())
            right = f"{100 * teacher.accuracy:.1f} % test accuracy"
            parts.append(
                f"The teacher has {teacher.parameters:,} parameters and {right}. Its mean first-choice weight, "
                f"the share of PLD that the label itself gets: {weights}. Near 1, PLD is nearly cross-entropy.\n"
            )
    parts += [f"{ALLOWANCE}\n", *(f"{problem}\n" for problem in study.problems)]
    say(console, *parts)
    seconds = f" ({record.seconds:.0f} s)" if record.seconds is not None else ""
    print(f"Report{seconds}: {page}\n")  # in one piece, however long: terminals make it a link
    # What is there to be copied is never folded.
    print("\n\n".join(f"{words}\n\n{textwrap.indent(lines, '    ')}" for words, lines in OWN))
