"""`plackett losses`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from plackett.cli.stopped import at_once
from plackett.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from plackett.losses.registry import Loss


def losses(name: Annotated[str | None, typer.Argument(help="One loss, to read its card.")] = None) -> None:
    """List the losses, or show the card of one: equation, paper, published defaults, deviations."""
    with at_once():
        from plackett import losses as register
        from plackett.losses.registry import LOSSES, get

    if name is not None:
        entry = get(_known(name, LOSSES))
        print(entry.card.text(entry.name))
        return
    names = register.names()
    width = max(map(len, names))
    for each in names:
        print(f"{each:<{width}}  {register.card(each).title}")
    print("\nplackett losses NAME shows the card of one.")


def _known(name: str, losses: Mapping[str, Loss]) -> str:
    """The loss that is meant by its name, its function's or its module's, in letters of either case."""
    names = {entry.module_name.lower(): each for each, entry in losses.items()}
    names |= {entry.function.__name__.lower(): each for each, entry in losses.items() if entry.function is not None}
    names |= {each.lower(): each for each in losses}
    if name.lower() not in names:
        raise InputError(f"There is no loss named {name!r}; {did_you_mean(name.lower(), losses)}.")
    return names[name.lower()]
