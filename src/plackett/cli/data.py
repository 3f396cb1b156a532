"""`plackett data`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plackett.cli.stopped import at_once
from plackett.errors import InputError, did_you_mean

KNOWN = ("cifar100",)


def data(
    name: Annotated[str, typer.Argument(help="Which data: cifar100.")],
    source: Annotated[Path, typer.Option("--from", help="The official archive, or the folder it unpacks to.")],
    out: Annotated[
        Path | None, typer.Option(help="Where it goes. [default: $PLACKETT_DATA, or plackett in the cache folder]")
    ] = None,
    per_class: Annotated[
        int | None, typer.Option(help="Only so many training pictures of every class, to try things with.")
    ] = None,
) -> None:
    """Check a data set's official files and prepare them for training."""
    if name not in KNOWN:
        raise InputError(f"There is no data set {name!r}; {did_you_mean(name, KNOWN)}.")
    with at_once():
        from plackett.data import cifar100

    path = cifar100.prepare(source, out, per_class=per_class)
    found = cifar100.load(path.parent)
    subset = f", {found.subset}" if found.subset else ""
    print(f"CIFAR-100{subset}: {len(found.train):,} pictures to train on, {len(found.test):,} to test on: {path}")
