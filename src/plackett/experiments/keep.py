"""What every run keeps beside its results: predictions, likeness to the teacher, and costs."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from plackett import models
from plackett.data import Pictures
from plackett.data.sight import Sight
from plackett.evaluation.latency import latency
from plackett.experiments import predictions, weights
from plackett.experiments.alignment import align
from plackett.experiments.predictions import Predictions
from plackett.experiments.records import write_json
from plackett.experiments.transfer import COSTS, TRANSFER, Costs, LatencyRecord, Transfer


class Looked(Protocol):
    """Test pictures, wherever they lie: labels, one to time networks with `[1, C, H, W]`, and some to look at."""

    @property
    def targets(self) -> Tensor: ...

    @property
    def classes(self) -> tuple[str, ...]: ...

    def one(self) -> Tensor: ...

    def pixels(self, which: NDArray[Any]) -> NDArray[np.uint8]: ...


@dataclass(frozen=True)
class InMemory:
    """Test pictures that are all there, as a network reads them."""

    pictures: Pictures

    @property
    def targets(self) -> Tensor:
        return self.pictures.targets

    @property
    def classes(self) -> tuple[str, ...]:
        return self.pictures.classes

    def one(self) -> Tensor:
        return self.pictures.inputs[:1]

    def pixels(self, which: NDArray[Any]) -> NDArray[np.uint8]:
        return pixels_of(self.pictures.subset(torch.from_numpy(which)))


def keep(
    folder: Path,
    test: Looked,
    students: Mapping[str, tuple[nn.Module, Tensor]],
    teacher: tuple[nn.Module, Tensor] | None,
    *,
    seconds: float,
    epochs: int,
    steps: int,
    spec: str | None = None,
    sight: Sight | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Writes predictions.safetensors, transfer.json and costs.json; networks come with their test logits.

    Where it is said what network the students are and how it sees a picture, their weights are kept too.
    """
    if spec is not None and sight is not None:
        for name, (network, _) in students.items():
            weights.write(folder, name, network, spec, test.classes, sight, options or {})
    logits = {name: said.cpu().numpy() for name, (_, said) in students.items()}
    theirs = None if teacher is None else teacher[1].cpu().numpy()
    targets = test.targets.cpu().numpy()
    which = predictions.to_show(targets, logits, theirs)
    pixels = test.pixels(which) if len(which) else None
    predictions.write(folder, Predictions(targets, logits, theirs, which, pixels))
    if teacher is not None:
        labels = test.targets.to(teacher[1].device)
        aligned = {name: align(teacher[1], said, labels) for name, (_, said) in students.items()}
        write_json(folder / TRANSFER, Transfer(students=aligned))
    picture = test.one()
    write_json(
        folder / COSTS,
        Costs(
            seconds=round(seconds, 2),
            epochs=epochs,
            steps=steps,
            students=list(students),
            peak_mib=_peak(picture.device),
            peak_of="device" if picture.device.type == "cuda" else "process",
            latency={name: _latency(network, picture) for name, (network, _) in students.items()},
            teacher_latency=None if teacher is None else _latency(teacher[0], picture),
            parameters={name: models.parameters(network) for name, (network, _) in students.items()},
            teacher_parameters=None if teacher is None else models.parameters(teacher[0]),
            threads=torch.get_num_threads(),
        ),
    )


def watch_memory(device: torch.device) -> None:
    """From here on the device's peak is counted anew; a process's cannot be."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def pixels_of(pictures: Pictures) -> NDArray[np.uint8]:
    """`[N, H, W, channels]` bytes to look at; normalised pictures are stretched over the range, a channel at a time."""
    inputs = pictures.inputs.float().cpu()
    if pictures.inputs.dtype == torch.uint8:
        inputs = inputs / 255
    elif float(inputs.min()) < 0 or float(inputs.max()) > 1:
        low, high = inputs.amin((0, 2, 3), keepdim=True), inputs.amax((0, 2, 3), keepdim=True)
        inputs = (inputs - low) / (high - low).clamp_min(1e-12)
    return (255 * inputs).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()


def _latency(network: nn.Module, picture: Tensor) -> LatencyRecord:
    return LatencyRecord(**asdict(latency(network, picture)))


def _peak(device: torch.device) -> float:
    """MiB: what torch had allocated on the device at most, or what the process ever held."""
    if device.type == "cuda":
        return round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20, 1)
