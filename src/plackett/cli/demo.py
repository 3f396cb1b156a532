"""`plackett demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plackett.cli.stopped import Stopped

if TYPE_CHECKING:
    from rich.console import Console

    from plackett.experiments.study import Study

DROP_IN = """\
loss = plackett.PLDLoss(temperature=4.0)
with torch.no_grad():
    teacher_logits = teacher(images)
loss(student(images), teacher_logits, labels).backward()"""


def demo(
    out: Annotated[Path, typer.Option(help="Where the runs and the report go.")] = Path("runs/demo"),
    seeds: Annotated[int, typer.Option(help="How many seeds every objective is trained with.")] = 5,
    tiny: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Distil a small network on real digits, in under a minute, and write a report."""
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
        from plackett.experiments import demo as experiment
        from plackett.report import need
        from plackett.report import write as write_report

        need("jinja2"), need("matplotlib")

        def watch(progress: experiment.Progress) -> None:
            bar.tell(progress.what, progress.done, progress.total)

        options = f"{f' --out {out}' if out != Path('runs/demo') else ''}{f' --seeds {seeds}' if seeds != 5 else ''}"
        size = experiment.TINY if tiny else experiment.Size()
        try:
            experiment.run(out, seeds=seeds, size=size, command=f"plackett demo{options}", watch=watch)
        except KeyboardInterrupt:
            raise Stopped(f"Stopped. What was finished is in {out}; the same command does the rest.") from None
    page = write_report(out)

    from plackett.experiments.study import read_study

    _show(console, read_study(out), page)


def _show(console: Console, study: Study, page: Path) -> None:
    from rich.console import RenderableType
    from rich.padding import Padding

    from plackett.cli.progress import say
    from plackett.cli.tables import comparison
    from plackett.experiments.tables import rows, verdict

    record = study.record
    parts: list[RenderableType] = [""]
    for place, case in enumerate(record.cases):
        table = rows(study.runs[case.group], record.baseline)
        parts.append(comparison(case.title, table, record.baseline))
        parts.append(Padding(verdict(table, record.baseline), (0, 2, 1, 2)))
        teacher = study.all_runs[0].record.teacher
        if place == 0 and teacher is not None:
            weights = ", ".join(f"{weight:.3f} at τ={tau:g}" for tau, weight in teacher.first_choice_weight.items())
            right = f"{100 * teacher.accuracy:.1f} % test accuracy"
            parts.append(
                f"The teacher has {teacher.parameters:,} parameters and {right}. Its mean first-choice weight, "
                f"the share of PLD that the label itself gets: {weights}. Near 1, PLD is nearly cross-entropy.\n"
            )
    parts += [f"{problem}\n" for problem in study.problems]
    say(console, *parts)
    seconds = f" ({record.seconds:.0f} s)" if record.seconds is not None else ""
    typer.echo(f"Report{seconds}: {page}\n")  # in one piece, however long: terminals make it a link
    say(
        console,
        "In your own training loop:\n",
        Padding(DROP_IN, (0, 0, 1, 4)),
        "Distilling from a folder of pictures is not in this version.",
    )
