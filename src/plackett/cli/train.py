"""`plackett train`: a network on labels alone, as a teacher is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plackett.cli import choices, distill, ready
from plackett.cli.reproduce import DeviceOption, MinutesOption, SmokeOption, TensorBoardOption
from plackett.cli.stopped import Stopped, at_once
from plackett.errors import InputError


def train(
    network: Annotated[str, typer.Argument(help="Which network: resnet56, timm:NAME, torchvision:NAME ...")],
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="On a folder of pictures: as of distill.")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="cifar100, digits; for a folder pictures, small-pictures; or your own (.yaml)."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Another number of epochs than the recipe's.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the weights and of the batches.")] = 0,
    data: Annotated[
        Path | None, typer.Option(help="A folder of pictures, a folder a class; or what plackett data made.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the weights and the checkpoint go.")] = Path("runs/train"),
    weights: Annotated[
        str | None, typer.Option(help="On a folder, to begin with: a file, a folder, pretrained.")
    ] = None,
    sight: Annotated[str | None, typer.Option(help="On a folder: how it sees, such as size=128.")] = None,
    workers: Annotated[int | None, typer.Option(min=0, help="On a folder: processes that read pictures.")] = None,
    device: DeviceOption = None,
    smoke: SmokeOption = False,
    tensorboard: TensorBoardOption = False,
    minutes: MinutesOption = None,
) -> None:
    """Train a network without a teacher, and save it as one: weights in half precision, and what they are."""
    from plackett.distilling import asked as askings

    if recipe in askings.SHIPPED or (recipe is None and ":" in network):
        given = {
            "student": network, "student_weights": weights, "student_sight": choices.sight(sight, "--sight"),
            "data": None if data is None else str(data), "objective": "ce", "seeds": [seed],
        }  # fmt: skip
        more = [*(keys or []), *([] if epochs is None else [f"epochs={epochs}"])]
        options = {
            "device": device, "workers": workers, "smoke": smoke, "tensorboard": tensorboard, "minutes": minutes,
        }  # fmt: skip
        distill.alone(askings.read(recipe or "pictures", given, more), out, options)
        return
    if keys or weights or sight or workers:
        raise InputError(
            f"{' '.join(keys or ['--weights, --sight and --workers'])}: such options are of training on a folder of "
            "pictures, with --recipe pictures or small-pictures."
        )
    _by_recipe(network, recipe or "cifar100", epochs, seed, data, out, device, smoke, tensorboard, minutes)


def _by_recipe(
    network: str,
    recipe: str,
    epochs: int | None,
    seed: int,
    data: Path | None,
    out: Path,
    device: str | None,
    smoke: bool,
    tensorboard: bool,
    minutes: float | None,
) -> None:
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
