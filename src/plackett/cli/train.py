"""`plackett train`: a network on labels alone, as a teacher is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plackett.cli import ready
from plackett.cli.reproduce import DataOption, DeviceOption, MinutesOption, SmokeOption, TensorBoardOption
from plackett.cli.stopped import Stopped, at_once


def train(
    network: Annotated[str, typer.Argument(help="Which network, such as resnet56.")],
    recipe: Annotated[str, typer.Option(help="cifar100, digits, or a recipe of your own (.yaml).")] = "cifar100",
    epochs: Annotated[int | None, typer.Option(help="Another number of epochs than the recipe's.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the weights and of the batches.")] = 0,
    data: DataOption = None,
    out: Annotated[Path, typer.Option(help="Where the weights and the checkpoint go.")] = Path("runs/train"),
    device: DeviceOption = None,
    smoke: SmokeOption = False,
    tensorboard: TensorBoardOption = False,
    minutes: MinutesOption = None,
) -> None:
    """Train a network without a teacher, and save it as one: weights in half precision, and what they are."""
    from rich.console import Console

    from plackett.cli.progress import Bar
    from plackett.experiments import recipes
    from plackett.experiments.limit import Limit

    limit = Limit(minutes)
    asked = recipes.read(recipe)
    asked = asked.smoked() if smoke else asked
    if epochs is not None:
        asked = asked.lasting(epochs, teacher=True)
    ready.folder(out)
    if tensorboard:
        ready.extras("--tensorboard", ["tracking"])
    with Bar(Console(highlight=False)) as bar:
        bar.tell("loading torch", 0, 1)
        with at_once():
            from plackett.experiments import task as tasks
            from plackett.experiments import teachers

        training, done = asked.for_teacher, 0
        task = tasks.load(asked, data, device)

        def watch(said: str, epochs_done: int) -> None:
            nonlocal done
            done += epochs_done
            bar.tell(f"{network}, {said}" if said else network, done, training.epochs)

        path = out / f"{network}-seed-{seed}.safetensors"
        try:
            teachers.train(
                network, task, training, seed, path, watch, every=asked.evaluate_every, saves=asked.checkpoint_every,
                tensorboard=tensorboard, limit=limit,
            )  # fmt: skip
        except KeyboardInterrupt:
            raise Stopped(f"Stopped. The last checkpoint is in {out}; the same command goes on from it.") from None
        found = teachers.load(path, network, task)
    print(f"{network}: {100 * found.accuracy:.2f} % of {len(task.test):,} test pictures, after the last epoch: {path}")
