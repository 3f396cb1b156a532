"""`plackett reproduce` and `plackett compare`: a recipe carried out, and its table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plackett.cli import choices, ready
from plackett.cli.stopped import Stopped, at_once
from plackett.cli.typed import typed
from plackett.errors import InputError

PairsOption = Annotated[str | None, typer.Option("--pair", help="Which pairs, with commas between them.")]
MethodsOption = Annotated[str | None, typer.Option(help="Which methods of the recipe, with commas between them.")]
SeedsOption = Annotated[str | None, typer.Option(help="Which seeds, as 0,1,2 or 0-2.")]
EpochsOption = Annotated[int | None, typer.Option(help="Another number of epochs, for teacher and students.")]
DataOption = Annotated[
    Path | None, typer.Option(help="Folder that `plackett data` prepared. [default: where it goes by default]")
]
OutOption = Annotated[Path | None, typer.Option(help="Run folders, checkpoints, teachers. [default: runs/RECIPE]")]
ResultsOption = Annotated[
    Path | None, typer.Option(help="Folder or .jsonl file of finished cells. [default: the folder of --out]")
]
TrainTeacherOption = Annotated[bool, typer.Option("--train-teacher", help="Train the teacher by the same recipe.")]
TeacherOption = Annotated[Path | None, typer.Option(help="The teacher's weights (safetensors), for one pair.")]
SizeOption = Annotated[int | None, typer.Option(help="At most so many students a cohort.")]
DeviceOption = Annotated[str | None, typer.Option(help="cpu or cuda. [default: cuda where there is one]")]
TensorBoardOption = Annotated[bool, typer.Option("--tensorboard", help="Write every epoch for TensorBoard too.")]
MinutesOption = Annotated[
    float | None, typer.Option(help="Stop by itself before so many, saved; exit code 75: the same command goes on.")
]
SmokeOption = Annotated[bool, typer.Option("--smoke", help="The recipe's smallest size, to see that all works.")]


def reproduce(
    name: Annotated[str, typer.Argument(help="Which recipe: cifar100.")],
    pair: PairsOption = None,
    methods: MethodsOption = None,
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
    tensorboard: TensorBoardOption = False,
    minutes: MinutesOption = None,
) -> None:
    """Train what a published table needs, one cohort a seed, and print ours beside the paper's."""
    if name != "cifar100":
        raise InputError(f"There is no published table {name!r} to reproduce; choices: cifar100. See plackett compare.")
    carry_out(name, pair, methods, seeds, epochs, data, out, results, train_teacher, teacher, per_cohort, device,
              smoke, tensorboard, None, minutes)  # fmt: skip


def compare(
    recipe: Annotated[str, typer.Argument(help="cifar100, digits, or a recipe of your own (.yaml).")],
    pair: PairsOption = None,
    methods: MethodsOption = None,
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
    tensorboard: TensorBoardOption = False,
    minutes: MinutesOption = None,
    base: Annotated[str | None, typer.Option(help="What differences are to. [default: as the recipe says]")] = None,
) -> None:
    """Compare objectives over seeds; only the cells that are missing are trained."""
    carry_out(recipe, pair, methods, seeds, epochs, data, out, results, train_teacher, teacher, per_cohort, device,
              smoke, tensorboard, base, minutes)  # fmt: skip


def carry_out(
    which: str,
    pair: str | None,
    methods: str | None,
    seeds: str | None,
    epochs: int | None,
    data: Path | None,
    out: Path | None,
    results: Path | None,
    train_teacher: bool,
    teacher: Path | None,
    per_cohort: int | None,
    device: str | None,
    smoke: bool,
    tensorboard: bool,
    base: str | None,
    minutes: float | None,
) -> None:
    from rich.console import Console

    from plackett.cli.progress import Bar
    from plackett.experiments import recipes
    from plackett.experiments.limit import Limit

    limit = Limit(minutes)

    recipe = recipes.read(which)
    recipe = recipe.smoked(epochs) if smoke else recipe
    if epochs is not None:
        recipe = recipe.lasting(epochs, teacher=True)
    folder = out or Path("runs") / (f"{recipe.name}-smoke" if smoke else recipe.name)
    pairs, wanted = recipe.chosen_pairs(choices.names(pair)), recipe.chosen_methods(choices.names(methods))
    chosen_seeds = choices.seeds(seeds)
    if base is not None:
        recipe.chosen_methods([base])
    ready.folder(folder)
    if tensorboard:
        ready.extras("--tensorboard", ["tracking"])
    console = Console(highlight=False)
    with Bar(console) as bar:
        bar.tell("loading torch", 0, 1)
        with at_once():
            from plackett.experiments import reproduce as experiment

        order = experiment.Order(
            recipe=recipe,
            pairs=pairs,
            methods=wanted,
            seeds=recipe.seeds if chosen_seeds is None else chosen_seeds,
            out=folder,
            results=results or folder,
            data=data,
            device=device,
            teacher=teacher,
            # Where it takes seconds nobody need ask for it.
            train_teacher=train_teacher or (teacher is None and (smoke or recipe.data == "digits")),
            per_cohort=per_cohort,
            tensorboard=tensorboard,
            limit=limit,
            command=typed(),
        )

        def watch(progress: experiment.Progress) -> None:
            bar.tell(progress.what, progress.done, progress.total)

        try:
            cells, stopped = experiment.run(order, watch)
        except KeyboardInterrupt:
            raise Stopped(f"Stopped. The last checkpoint is in {folder}; the same command goes on from it.") from None
    from plackett.cli.table import show
    from plackett.experiments import cell_table

    show(cell_table.render(cell_table.tables(cells, base or recipe.baseline), "text"))
    for sentence in stopped:
        print(sentence)
    print(f"Cells: {order.results}")
