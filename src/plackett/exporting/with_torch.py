"""A network as a `torch.export` program (.pt2): it runs without the code that built it."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from plackett.exporting.compared import Checking, Compared, compare, noise
from plackett.exporting.served import Layout, Served, as_taken, facts, graph
from plackett.files import replacing
from plackett.models.packed import Packed

FACTS = "plackett.json"


def to_torch(
    packed: Packed,
    path: Path,
    *,
    checking: Checking | None = None,
    bytes_in: Layout | None = None,
    half: bool = False,
) -> Compared:
    """Writes `path` if the program, read back from it, answers as the network does.

    What its user must know is in the file under `plackett.json`: `torch.export.load(path, extra_files=held)` with
    `held = {"plackett.json": ""}`. Arguments as in `to_onnx`.
    """
    checking, taken = as_taken(checking or noise(packed.sight), packed.sight, bytes_in)
    served = Served(packed.network, packed.sight, bytes_in, half)
    program = graph(served, taken(checking.inputs[:1]), packed.spec)
    reference = Served(packed.network, packed.sight)
    with replacing(path) as temporary, warnings.catch_warnings(action="ignore"):
        _save(program, temporary, {})
        back = _load(temporary)

        def run(inputs: Tensor) -> Tensor:
            logits: Tensor = back(taken(inputs))
            return logits

        compared = compare(reference, run, checking, path, half)
        _save(program, temporary, facts(packed, bytes_in, half, compared))
        _load(temporary)
    return compared


def _save(program: torch.export.ExportedProgram, path: Path, what: dict[str, Any]) -> None:
    with path.open("wb") as file:
        torch.export.save(program, file, extra_files={FACTS: json.dumps(what, ensure_ascii=False)})


def _load(path: Path) -> torch.nn.Module:
    with path.open("rb") as file:
        return torch.export.load(file).module()
