"""`plackett evaluate`."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plackett.cli import asked_network as asked
from plackett.cli import choices
from plackett.cli.asked_network import DataOption, ModelArgument, SplitOption, ThreadsOption, TrustOption, WeightsOption
from plackett.cli.letters import spell
from plackett.cli.reproduce import DeviceOption
from plackett.cli.stopped import at_once
from plackett.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from plackett.cli.progress import Bar
    from plackett.data.source import Source
    from plackett.evaluation.evaluated import Quality
    from plackett.models.packed import Packed

FORMATS = ("text", "markdown", "json")
FEW = 1000  # pictures that are read in the time that worker processes take to start


def evaluate(
    model: ModelArgument,
    data: DataOption = None,
    teacher: Annotated[str | None, typer.Option(help="A network to compare with, named as MODEL is.")] = None,
    weights: WeightsOption = None,
    teacher_weights: Annotated[str | None, typer.Option(help="The same as --weights, for the teacher.")] = None,
    teacher_classes: Annotated[
        str | None, typer.Option(help="Names of the teacher's classes: a file, imagenet-1k, or same.")
    ] = None,
    split: SplitOption = None,
    limit: Annotated[int | None, typer.Option(help="At most so many pictures, evenly spaced.")] = None,
    batch: Annotated[str, typer.Option(help="Batch sizes to time, with commas between them.")] = "1,32",
    seconds: Annotated[float, typer.Option(min=0.0, help="How long each network is timed at each batch size.")] = 1.0,
    threads: ThreadsOption = None,
    device: DeviceOption = None,
    form: Annotated[str, typer.Option("--format", help="text, markdown or json.")] = "text",
    trust_checkpoint: TrustOption = False,
) -> None:
    """How good a network is and what it costs: accuracy, calibration, agreement, MACs, latency, memory."""
    if form not in FORMATS:
        raise InputError(f"There is no format {form!r}; {did_you_mean(form, FORMATS)}.")
    sizes = _sizes(batch)
    if teacher is None and (teacher_weights or teacher_classes):
        raise InputError("--teacher-weights and --teacher-classes are of a teacher; name it with --teacher.")
    from rich.console import Console

    from plackett.cli.progress import Bar

    with Bar(Console(highlight=False, stderr=True)) as bar:
        bar.tell("loading torch", 0, 1)
        with at_once():
            from plackett.cli import figures
            from plackett.evaluation.evaluated import Evaluated, costs
            from plackett.experiments import plain

        asked.use_threads(threads)
        where = asked.device_of(device)
        shown = asked.pictures(data, split, limit)
        source = None if shown is None else shown[1]
        names = ["student", "teacher"] if teacher else ["network"]
        student = asked.network(model, weights, source, trust_checkpoint)
        found = [student]
        if teacher is not None:
            found.append(asked.network(teacher, teacher_weights, source, trust_checkpoint, "--teacher"))
        packed = [each.packed for each in found]
        notes = [*(shown[2] if shown else ()), *(note for each in found for note in each.notes)]
        quality: Sequence[Quality | None] = [None] * len(packed)
        if source is not None:
            quality = _quality(packed, source, teacher_classes, where, bar, notes)
        bar.tell("latency", 0, 1)
        cost = costs(packed, sizes, where, seconds)
        networks = [
            Evaluated(name, p.spec, p.sight.size, len(p.classes), c, q)
            for name, p, c, q in zip(names, packed, cost, quality, strict=True)
        ]
    about = asked.surroundings(where)
    if form == "json":
        what: dict[str, Any] = {"device": about, "pictures": shown[0] if shown else None, "notes": notes}
        print(json.dumps(figures.document(networks, what), indent=2, ensure_ascii=False))
        return
    shape = plain.markdown if form == "markdown" else plain.aligned
    parts = [_title(shown[0] if shown else None, networks[0].quality, len(packed[0].classes))]
    parts += [shape(figures.side_by_side(networks)), "\n".join([*conditions(about, networks), *notes])]
    print(spell("\n\n".join(parts), sys.stdout.encoding or "utf-8"))


def _sizes(batch: str) -> list[int]:
    found = choices.names(batch) or []
    if not found or not all(each.isdigit() and int(each) > 0 for each in found):
        raise InputError(f"--batch {batch!r} is not a list of batch sizes; write 1,32.")
    return sorted({int(each) for each in found})


def _quality(
    packed: Sequence[Packed],
    source: Source,
    teacher_classes: str | None,
    device: torch.device,
    bar: Bar,
    notes: list[str],
) -> list[Quality]:
    from plackett.evaluation.on_pictures import answers
    from plackett.teachers.matched import read_names

    workers = min(os.cpu_count() or 1, 8) if len(source) > FEW else 0
    said = []
    for place, each in enumerate(packed):
        what = "teacher" if place else "pictures"
        bar.tell(what, 0, len(source))
        names = read_names(teacher_classes, source.classes) if place and teacher_classes else None
        said.append(
            answers(
                each, source, teacher=bool(place), names=names, device=device, workers=workers,
                tell=lambda done, what=what: bar.tell(what, done, len(source)),  # type: ignore[misc]
            )
        )  # fmt: skip
        notes += said[-1].notes
    if bad := said[0].bad:
        notes.append(f"{len(bad)} of {len(source):,} pictures cannot be read and are left out (the first: {bad[0]}).")
    teacher = said[1] if len(said) > 1 else None
    return [said[0].quality(teacher), *(each.quality() for each in said[1:])]


def _title(pictures: str | None, quality: Quality | None, classes: int) -> str:
    if quality is None:
        return "What it costs (no pictures were named with --data)"
    return f"On {quality.pictures:,} pictures of {pictures}, {classes} classes"


def conditions(about: str, networks: Sequence[Any]) -> list[str]:
    """What the figures are, in one sentence each."""
    times = [time for each in networks for time in each.cost.latency.values()]
    least = min(time.n for time in times)
    return [
        f"Times: {about}; medians of at least {least} calls" + (", in turns." if len(networks) > 1 else "."),
        "MACs: convolutions, matrix products and attention of one picture.",
        "Activations: the most tensors alive at once in an eager pass, pictures among them; no weights, no workspaces.",
    ]
