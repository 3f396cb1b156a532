"""`plackett tune`: options of objectives by a search of a stated size, on pictures that are no test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plackett.cli import choices, ready
from plackett.cli.letters import spell
from plackett.cli.reproduce import DataOption, DeviceOption, EpochsOption
from plackett.cli.stopped import Stopped, at_once
from plackett.errors import InputError

if TYPE_CHECKING:
    from plackett.experiments.search import Space
    from plackett.experiments.tune import Best

CAUTION = (
    "The best of {n} trials looks better on these pictures than it is: they chose it. What it is worth, fresh seeds on "
    "the test set say:\n    plackett compare {path}"
)


def tune(
    recipe: Annotated[str, typer.Argument(help="cifar100, digits, or a recipe of your own (.yaml).")],
    objective: Annotated[str | None, typer.Option(help="Which methods. [default: the recipe's]")] = None,
    trials: Annotated[int, typer.Option(help="Of every objective.")] = 20,
    minutes: Annotated[float | None, typer.Option(help="No new trials after so many; all have as many then.")] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(help="objective.METHOD.OPTION=LOW..HIGH, LOW..HIGH:log or A,B,C, in the place of the usual."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="A trial is a mean over so many.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of the search.")] = 0,
    pair: Annotated[str | None, typer.Option(help="Which pair. [default: the recipe's first]")] = None,
    epochs: EpochsOption = None,
    data: DataOption = None,
    out: Annotated[Path | None, typer.Option(help="Where trials and recipe go. [default: runs/RECIPE-tune]")] = None,
    teacher: Annotated[Path | None, typer.Option(help="The teacher's weights (safetensors).")] = None,
    device: DeviceOption = None,
) -> None:
    """Search every objective's options with the same number of trials, on training pictures that are held out."""
    from rich.console import Console

    from plackett.cli.progress import Bar
    from plackett.experiments import recipes
    from plackett.experiments import search as searches

    asked = recipes.read(recipe)
    if epochs is not None:
        asked = asked.lasting(epochs, teacher=True)
    methods = asked.chosen_methods(choices.names(objective))
    pairs = asked.chosen_pairs(choices.names(pair))
    if pair is not None and len(pairs) != 1:
        raise InputError(f"Tuning is of one pair at a time; got {', '.join(pairs)}.")
    spaces = searches.spaces(asked, methods, search or [])
    folder = out or Path("runs") / f"{asked.name}-tune"
    ready.folder(folder)
    ready.extras("plackett tune", ["tune"])
    with Bar(Console(highlight=False)) as bar:
        bar.tell("loading torch", 0, 1)
        with at_once():
            from plackett.experiments import tune as experiment

        order = experiment.Order(
            recipe=asked, pair=pairs[0], spaces=spaces, trials=trials, out=folder, minutes=minutes, seeds=seeds,
            seed=seed, data=data, device=device, teacher=teacher,
        )  # fmt: skip
        try:
            found, task = experiment.run(order, bar.tell)
        except KeyboardInterrupt:
            raise Stopped(f"Stopped. Finished trials are in {folder}; the same command does the rest.") from None
    path = folder / f"{asked.name}-tuned.yaml"
    _write(path, experiment.tuned(order, found), found, len(task.test))
    _show(found, spaces, len(task.train), len(task.test), order.seeds, path)


def _write(path: Path, recipe: dict[str, Any], found: list[Best], judged: int) -> None:
    from plackett import yamls
    from plackett.experiments.records import write_text

    head = (
        f"# Claim:   none. The best of {found[0].trials} trials of every objective, by {judged:,} training pictures "
        f"that were held out.\n# Command: plackett compare {path}\n\n"
    )
    write_text(path, head + yamls.dump(recipe))


def _show(found: list[Best], spaces: dict[str, Space], train: int, judged: int, seeds: int, path: Path) -> None:
    from plackett.experiments import plain

    rows = [["objective", "trials", "validation", "recipe's own", "best values"]]
    for best in found:
        values = ", ".join(
            f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}" for key, value in best.values.items()
        )
        own = "-" if best.own is None else f"{100 * best.own:.2f}"
        rows.append([best.method, str(best.trials), f"{100 * best.accuracy:.2f}", own, values])
    lines = [
        f"Validation accuracy in %, on {judged:,} training pictures that students of {train:,} others do not see, "
        f"{'one seed' if seeds == 1 else f'a mean of {seeds} seeds'} a trial; no test picture was read for it.",
        "",
        plain.aligned(rows),
        "",
        *(f"Searched, {m}: {'; '.join(f'{k} {v}' for k, v in space.items())}." for m, space in spaces.items()),
        "",
        CAUTION.format(n=found[0].trials, path=path),
    ]
    print(spell("\n".join(lines), sys.stdout.encoding or "utf-8"))
