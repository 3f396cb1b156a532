"""What `evaluate` and `export` have in common: the network that is meant, its pictures, the device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plackett.errors import InputError

if TYPE_CHECKING:
    import torch

    from plackett.data.source import Source
    from plackett.models.given import Given

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="A run's folder, a folder packed for the hub, or a name and --weights.")
]
WeightsOption = Annotated[str | None, typer.Option(help="For a name such as timm:resnet18: a file, or pretrained.")]
DataOption = Annotated[Path | None, typer.Option(help="Pictures: a folder of class folders, with splits or without.")]
SplitOption = Annotated[str | None, typer.Option(help="test, val or train. [default: test, else val]")]
TrustOption = Annotated[bool, typer.Option("--trust-checkpoint", help="Read pickled weights, and run code they name.")]
ClassesOption = Annotated[
    str | None, typer.Option(help="Its classes: a file, one a line; same; or a list such as imagenet-1k.")
]
OptionsOption = Annotated[list[str] | None, typer.Option(help="key=value for whoever makes it; more than once.")]
TeacherSightOption = Annotated[
    str | None, typer.Option(help="How it sees, as size=260,mean=127/255,std=128/255,crop=260/292.")
]
StudentSightOption = Annotated[str | None, typer.Option(help="How the student sees, such as size=128.")]
ThreadsOption = Annotated[int | None, typer.Option(help="Threads of torch. [default: as torch chooses]")]


def pictures(
    data: Path | None, wanted: str | None, limit: int | None = None
) -> tuple[str, Source, tuple[str, ...]] | None:
    """What they are called, the pictures, and notes on how they were found; None where none were named."""
    from plackett.data.folders import open_pictures
    from plackett.evaluation.on_pictures import split

    if data is None:
        if wanted is not None or limit is not None:
            raise InputError(f"{'--split' if wanted else '--limit'} is of pictures; name them with --data DIR.")
        return None
    opened = open_pictures(data)
    name, source = split(opened, data, wanted, limit)
    notes = opened.notes if name.startswith("val") else ()  # they are on how pictures to validate with were found
    return f"{data.name or data}/{name}", source, notes


def network(name: str, weights: str | None, source: Source | None, trust: bool, what: str = "MODEL") -> Given:
    """The network, which must be trained where pictures are to be told apart."""
    from plackett.models.given import given

    found = given(name, weights=weights, classes=None if source is None else source.classes, trust=trust)
    if source is not None and not found.trained:
        option = "--weights" if what == "MODEL" else "--teacher-weights"
        raise InputError(
            f"{what} {name} has no trained weights for these classes: give them with {option} FILE (or pretrained), or "
            "name the folder of a trained network."
        )
    return found


def device_of(given: str | None) -> torch.device:
    """The device asked for, or cuda where there is one."""
    from plackett import devices

    return devices.chosen(given)


def use_threads(threads: int | None) -> None:
    import torch

    if threads is not None:
        if threads < 1:
            raise InputError(f"--threads {threads} is too few; take 1 or more.")
        torch.set_num_threads(threads)


def surroundings(device: torch.device) -> str:
    """The processor, threads and versions that times depend on."""
    import torch

    from plackett.experiments.surroundings import processor

    version = f"torch {torch.__version__.partition('+')[0]}"
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, float32, {version}"
    threads = torch.get_num_threads()
    return f"{processor()}, {threads} thread{'s' if threads > 1 else ''}, float32, {version}"
