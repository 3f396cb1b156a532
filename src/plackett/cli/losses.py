"""`plackett losses`."""

from __future__ import annotations

from typing import Annotated

import typer


def losses(name: Annotated[str | None, typer.Argument(help="One loss, to read its card.")] = None) -> None:
    """List the losses, or show the card of one: equation, paper, published defaults, deviations."""
    from plackett import losses as register
    from plackett.losses.registry import get

    if name is not None:
        entry = get(name)
        typer.echo(entry.card.text(entry.name))
        return
    names = register.names()
    width = max(map(len, names))
    for each in names:
        typer.echo(f"{each:<{width}}  {register.card(each).title}")
    typer.echo("\nplackett losses NAME shows the card of one.")
