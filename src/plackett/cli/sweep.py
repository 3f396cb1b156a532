"""`plackett sweep`: accuracy over the values of a key of a recipe."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from plackett.cli import choices, ready
from plackett.cli.letters import spell
from plackett.cli.reproduce import (
    DataOption,
    DeviceOption,
    EpochsOption,
    MinutesOption,
    OutOption,
    PairsOption,
    ResultsOption,
    SeedsOption,
    SizeOption,
    SmokeOption,
    TeacherOption,
    TrainTeacherOption,
)
from plackett.cli.stopped import Stopped, at_once
from plackett.cli.typed import typed


def sweep(
    recipe: Annotated[str, typer.Argument(help="cifar100, digits, one of their sweeps, or a recipe of your own.")],
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=A,B]...",
            help="objective.METHOD.OPTION=... (ce_weight too), or training.KEY=... [default: the recipe's]",
        ),
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Methods of the recipe to train along as they are.")] = None,
    pair: PairsOption = None,
    seeds: SeedsOption = None,
    epochs: EpochsOption = None,
    data: DataOption = None,
    out: OutOption = None,
    results: ResultsOption = None,
    train_teacher: TrainTeacherOption = False,
    teacher: TeacherOption = None,
    per_cohort: SizeOption = None,
    device: DeviceOption = None,
    smoke: SmokeOption = False,
    minutes: MinutesOption = None,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Table and CSV only.")] = False,
) -> None:
    """Train a recipe at every value of a key, as cohorts, and show accuracy over it; goes on where it was stopped."""
    from rich.console import Console

    from plackett.cli.progress import Bar
    from plackett.experiments import plain, recipes, sweep_table
    from plackett.experiments import sweep as plans
    from plackett.experiments.limit import Limit
    from plackett.experiments.records import write_text

    limit = Limit(minutes)
    asked = recipes.read(recipe)
    given = list(keys or (asked.sweep.keys if asked.sweep else ()))
    along = choices.names(methods)
    if along is None:
        along = list(asked.sweep.methods) if asked.sweep and not keys else []
    asked.chosen_methods(along)
    if smoke:
        asked, given = asked.smoked(epochs), plans.smallest(given)
    if epochs is not None:
        asked = asked.lasting(epochs, teacher=True)
    plan = plans.plan(asked, given, along)
    pairs = asked.chosen_pairs(choices.names(pair))
    folder = out or Path("runs") / (f"{asked.name}-sweep-smoke" if smoke else f"{asked.name}-sweep")
    ready.folder(folder)
    if not no_picture:
        ready.extras("The picture (leave it out with --no-picture)", ["report"])
    chosen = choices.seeds(seeds)
    with Bar(Console(highlight=False)) as bar:
        bar.tell("loading torch", 0, 1)
        with at_once():
            from plackett.experiments import reproduce as experiment

        cells, stopped = [], []
        for place, one in enumerate(plan.recipes):
            order = experiment.Order(
                recipe=one,
                pairs=pairs,
                methods=plan.methods,
                seeds=asked.seeds if chosen is None else chosen,
                out=folder if len(plan.recipes) == 1 else folder / one.name,
                results=results or folder,
                data=data,
                device=device,
                teacher=teacher,
                teachers=folder / "teachers",
                train_teacher=train_teacher or (teacher is None and (smoke or one.data == "digits")),
                per_cohort=per_cohort,
                limit=limit,
                command=typed(),
            )
            prefix = f"{place + 1} of {len(plan.recipes)}: " if len(plan.recipes) > 1 else ""

            def watch(progress: experiment.Progress, prefix: str = prefix) -> None:
                bar.tell(prefix + progress.what, progress.done, progress.total)

            try:
                found, sentences = experiment.run(order, watch)
            except KeyboardInterrupt:
                raise Stopped(f"Stopped. What was finished is in {folder}; the same command does the rest.") from None
            cells += found
            stopped += sentences
    swept = [sweep_table.gather(plan, cells, each) for each in pairs]
    name = "-".join(dict.fromkeys(key.text for key in plan.keys))
    stem = re.sub(r"[^A-Za-z0-9._=-]+", "-", asked.name if not keys and asked.sweep else f"{asked.name}-{name}")[:120]
    where = results.parent if results is not None and results.suffix == ".jsonl" else results or folder
    paths = [where / f"{stem}.csv"]
    write_text(paths[0], plain.comma_separated(sweep_table.csv_rows(asked.name, swept)))
    if not no_picture:
        from plackett.report import sweeps

        for one_pair in swept:
            tail = f"-{one_pair.pair}" if len(swept) > 1 else ""
            paths += sweeps.draw(one_pair, where / f"{stem}{tail}")
    for one_pair in swept:
        _say(sweep_table.text(one_pair, plan.title))
        _say("\n".join(["", *sweep_table.extremes(one_pair)]))
    _say("\n" + sweep_table.NOTE)
    for sentence in stopped:
        _say(sentence)
    print(f"Cells: {results or folder}. Written: {', '.join(map(str, paths))}")


def _say(text: str) -> None:
    print(spell(text, sys.stdout.encoding or "utf-8"))
