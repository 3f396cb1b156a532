"""`plackett export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plackett.cli import asked_network as asked
from plackett.cli import ready
from plackett.cli.asked_network import DataOption, ModelArgument, SplitOption, TrustOption, WeightsOption
from plackett.cli.stopped import at_once
from plackett.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from plackett.data.source import Source
    from plackett.models.packed import Packed

FORMS = ("onnx", "torch", "hub")
FILES = {"onnx": "model.onnx", "torch": "model.pt2", "hub": "model.safetensors, config.json, README.md"}
FEWER_MAY_MISLEAD = 16


def export(
    model: ModelArgument,
    out: Annotated[Path, typer.Option(help="The folder to write to.")],
    to: Annotated[str, typer.Option(help="onnx, torch, hub, or all; several with commas between them.")] = "all",
    data: DataOption = None,
    split: SplitOption = None,
    check: Annotated[int, typer.Option(min=1, help="How many of the pictures each file is checked with.")] = 64,
    weights: WeightsOption = None,
    opset: Annotated[int | None, typer.Option(help="ONNX opset. [default: as torch chooses]")] = None,
    fp16: Annotated[bool, typer.Option("--fp16", help="Weights and computation in half precision.")] = False,
    with_preprocessing: Annotated[
        str | None, typer.Option(help="nhwc or nchw: onnx and torch take uint8 pictures so and normalise them inside.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Of the model card. [default: the folder's name]")] = None,
    trust_checkpoint: TrustOption = False,
) -> None:
    """Write a trained network as ONNX, as a torch.export program, and as a folder for the hub; each is checked."""
    forms = _forms(to)
    ready.folder(out)
    if "onnx" in forms:
        ready.extras("plackett export --to onnx", ["export"])
    from rich.console import Console

    from plackett.cli.progress import Bar

    with Bar(Console(highlight=False, stderr=True)) as bar:
        bar.tell("loading torch", 0, 1)
        with at_once():
            from plackett import exporting
            from plackett.evaluation.on_pictures import to_check
            from plackett.exporting.served import layout

        bytes_in = layout(with_preprocessing)
        shown = asked.pictures(data, split)
        source = None if shown is None else shown[1]
        found = asked.network(model, weights, source, trust_checkpoint)
        packed, notes = found.packed, list(found.notes)
        if not found.trained:
            notes.append(f"The weights of {model} are drawn at random: nothing was trained. --weights names a file.")
        checking = None
        if source is not None and shown is not None:
            inputs = to_check(packed, source, check)
            checking = exporting.Checking(inputs, f"{len(inputs)} pictures of {shown[0]}")
        said = []
        for place, form in enumerate(forms):
            bar.tell(form, place, len(forms))
            if form == "onnx":
                compared = exporting.to_onnx(
                    packed, out / FILES[form], checking=checking, opset=opset, bytes_in=bytes_in, half=fp16
                )
            elif form == "torch":
                compared = exporting.to_torch(
                    packed, out / FILES[form], checking=checking, bytes_in=bytes_in, half=fp16
                )
            else:
                figures, conditions = _figures(packed, source, shown[0] if shown else "")
                compared = exporting.to_hub(
                    packed, out, checking=checking, half=fp16, title=title, figures=figures, conditions=conditions
                )
            said.append(f"{out / FILES[form].partition(', ')[0]}: {compared.sentence()}.")
    print("\n".join(said))
    if checking is None:
        notes.append(
            "Name pictures with --data DIR, so that files are checked, and the card is filled, with real ones."
        )
    print("\n".join(notes), end="\n" if notes else "")


def _forms(to: str) -> list[str]:
    from plackett.cli.choices import names

    asked_for = names(to) or []
    for each in asked_for:
        if each not in (*FORMS, "all"):
            raise InputError(f"There is no form {each!r} to export to; {did_you_mean(each, (*FORMS, 'all'))}.")
    if not asked_for:
        raise InputError(f"--to is empty; choices: all, {', '.join(FORMS)}.")
    return [form for form in FORMS if form in asked_for or "all" in asked_for]


def _figures(packed: Packed, source: Source | None, pictures: str) -> tuple[dict[str, str], str]:
    """For the model card: what can be measured here and now."""
    from plackett.cli.evaluate import conditions
    from plackett.cli.figures import alone
    from plackett.evaluation.evaluated import Evaluated, costs
    from plackett.evaluation.on_pictures import answers

    device = asked.device_of("cpu")
    quality = None if source is None else answers(packed, source, device=device).quality()
    cost = costs([packed], [1, 32], device)[0]
    found = Evaluated("student", packed.spec, packed.sight.size, len(packed.classes), cost, quality)
    on = "" if quality is None else f"Accuracy: on {quality.pictures:,} pictures of {pictures}.\n"
    return alone(found), on + "\n".join(conditions(asked.surroundings(device), [found]))
