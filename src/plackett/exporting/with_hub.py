"""A network as a folder for the Hugging Face Hub: weights, config.json as timm reads it, and a model card."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from plackett.errors import InputError, missing_extra
from plackett.exporting.card import card
from plackett.exporting.compared import Checking, Compared, ExportError, compare, noise
from plackett.exporting.served import Served, first_line
from plackett.exporting.timm_config import architecture, timm_config
from plackett.files import replacing
from plackett.models import packed as packs
from plackett.models.packed import Packed
from plackett.models.with_timm import register_with_timm

CARD = "README.md"


def to_hub(
    packed: Packed,
    folder: Path,
    *,
    checking: Checking | None = None,
    half: bool = False,
    title: str | None = None,
    figures: Mapping[str, str] | None = None,
    conditions: str = "",
) -> Compared:
    """Writes the folder if timm, given it, answers as the network does (plackett itself, where timm cannot build it).

    Args:
        packed: the network and how it sees.
        folder: what to write to; other files in it stay.
        checking: pictures to check it with; else noise.
        half: weights in float16; timm computes in float32.
        title: of the model card; else the folder's name.
        figures: for the model card, by what they are called.
        conditions: sentences for the model card on how the figures were measured.
    """
    sent = replace(packed, network=copy.deepcopy(packed.network).cpu().eval())
    if half:
        sent.network.half()
    checking = checking or noise(packed.sight)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as name:
        trial = packs.save(Path(name), sent, timm_config(packed))
        back = Served(_loaded(trial, packed), packed.sight)
        compared = compare(Served(packed.network, packed.sight), back, checking, folder / packs.WEIGHTS, half)
    text = card(packed, title or folder.resolve().name, figures or {}, conditions)
    packs.save(folder, sent, timm_config(packed))
    with replacing(folder / CARD) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return compared


def _loaded(folder: Path, packed: Packed) -> nn.Module:
    """The network as who downloads the folder gets it."""
    if architecture(packed) is None:
        try:
            return packs.load(folder, trust=True).network
        except InputError:  # a factory that is not at hand here: the weights are what is sent
            network = copy.deepcopy(packed.network)
            network.load_state_dict(packs.tensors(folder))
            return network
    try:
        import timm
    except ImportError as error:
        raise missing_extra("timm", "vision", "A folder for the hub") from error
    register_with_timm()
    try:
        with torch.random.fork_rng(devices=()):
            made: nn.Module = timm.create_model(f"local-dir:{folder}", pretrained=True)
    except Exception as error:  # timm's own, of many kinds
        raise ExportError(f"timm cannot load {packed.spec} back from its folder ({first_line(error)}).") from error
    return made
