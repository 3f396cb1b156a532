"""`plackett landscape`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plackett.cli import choices, ready
from plackett.cli.letters import spell
from plackett.cli.stopped import at_once
from plackett.errors import InputError

if TYPE_CHECKING:
    from plackett.analysis import Given, Surface


def landscape(
    losses: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LOSS]...", help="pld, kd:temperature=2, or '{ce: 0.1, kd: 0.9}'. [default: dist, kd, pld]"
        ),
    ] = None,
    temperatures: Annotated[str | None, typer.Option(help="PLD at these instead, as 2,1,0.5,0.1.")] = None,
    classes: Annotated[int, typer.Option(help="Of the random teacher.")] = 100,
    norm: Annotated[float, typer.Option(help="Of the random teacher's logits.")] = 1.0,
    label: Annotated[int | None, typer.Option(help="The true class. [default: the teacher's first]")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the teacher and the directions.")] = 0,
    run: Annotated[Path | None, typer.Option(help="A run folder: around its trained student, in its weights.")] = None,
    student: Annotated[str | None, typer.Option(help="Which student of the run.")] = None,
    pictures: Annotated[int | None, typer.Option(help="With --run: of so many test pictures. [default: 128]")] = None,
    radius: Annotated[
        float | None, typer.Option(help="With --run: how far, in lengths of the weights' own rows. [default: 1]")
    ] = None,
    points: Annotated[int | None, typer.Option(help="Along each side. [default: 51, or 25 with --run]")] = None,
    out: Annotated[Path, typer.Option(help="Where picture and figures go.")] = Path("runs/landscape"),
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Only measure, and write the figures.")] = False,
) -> None:
    """Loss surfaces over a plane of logits, or of a student's weights: pictures, and whether they are convex."""
    if run is None and student is not None:
        raise InputError("--student is a student of a run folder; name the folder with --run.")
    for option, given_without in (("--pictures", pictures), ("--radius", radius)):
        if run is None and given_without is not None:
            raise InputError(f"{option} is of a run's student; name the run's folder with --run, or leave it out.")
    if losses and temperatures:
        raise InputError("--temperatures draws PLD at each of them, so name no losses beside it.")
    ready.folder(out)
    if not no_picture:
        ready.extras("The picture (leave it out with --no-picture)", ["report"])
    taus = choices.numbers("--temperatures", temperatures)
    with at_once():
        from plackett.analysis.given import PAPER, given, over_temperatures

    asked: list[Given] = over_temperatures(taus) if taus is not None else [given(each) for each in losses or ()]
    if run is None:
        asked = asked or list(PAPER)
        found, told = _of_logits(asked, classes, norm, label, seed, points or 51)
        name = "temperatures" if temperatures else "landscape"
    else:
        asked, found, told = _of_weights(
            asked, run, student, 128 if pictures is None else pictures, 1.0 if radius is None else radius, seed,
            points or 25,
        )  # fmt: skip
        name = f"weights-{student or 'student'}"
    _leave(out, name, asked, found, told, picture=not no_picture, verdict=run is None)


def _of_logits(
    asked: Sequence[Given], classes: int, norm: float, label: int | None, seed: int, points: int
) -> tuple[list[Surface], str]:
    from plackett.analysis import LogitSlice

    plane = LogitSlice.random(classes, seed, norm=norm, label=label)
    of_label = "the teacher's first class" if label is None else f"class {label}"
    told = (
        f"A plane of student logits through a random teacher's: {classes} classes, norm {norm:g}, seed {seed}, "
        f"label {of_label}; ±{5 * norm:g} in each direction, {points} x {points} points, float64."
    )
    return [plane.survey(each.objective(), points=points) for each in asked], told


def _of_weights(
    asked: list[Given], folder: Path, student: str | None, pictures: int, radius: float, seed: int, points: int
) -> tuple[list[Given], list[Surface], str]:
    from rich.console import Console

    from plackett.analysis.around import around
    from plackett.cli.progress import Bar

    plane, own, told = around(folder, student, pictures, seed)
    asked = asked or [own]
    found = []
    with Bar(Console(highlight=False)) as bar:
        for each in asked:

            def watch(done: int, of: int, title: str = each.title) -> None:
                bar.tell(title, done, of)

            found.append(plane.survey(each.objective(), radius=radius, points=points, watch=watch))
    return asked, found, f"{told} ±{radius:g} in each direction, {points} x {points} points."


def _leave(
    out: Path, name: str, asked: Sequence[Given], found: Sequence[Surface], told: str, *, picture: bool, verdict: bool
) -> None:
    from plackett.analysis import tables
    from plackett.experiments import plain
    from plackett.experiments.records import write_text

    titles = [each.title for each in asked]
    print(spell(f"{told}\n\n{plain.aligned(tables.measured(titles, found))}\n", sys.stdout.encoding or "utf-8"))
    print(spell(tables.tolerances(found, whole=verdict), sys.stdout.encoding or "utf-8"))
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    paths = [out / f"{safe}.csv", out / f"{safe}-convexity.csv"]
    write_text(paths[0], plain.comma_separated(tables.grid(titles, found)))
    write_text(paths[1], plain.comma_separated(tables.figures(titles, found)))
    if picture:
        from plackett.report import surfaces

        shown = [
            surfaces.Shown(title, tables.caption(surface), *surface.numpy(), surface.lowest)
            for title, surface in zip(titles, found, strict=True)
        ]
        paths += surfaces.draw(shown, out / safe, middle="teacher" if verdict else "as trained")
    print(f"Written: {', '.join(map(str, paths))}")
