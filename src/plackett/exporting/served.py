"""The network as others run it: what goes in, what comes out, and what they must know."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

import plackett
from plackett.data.sight import Sight
from plackett.errors import InputError, did_you_mean
from plackett.exporting.compared import Checking, Compared, ExportError, channelwise, normalised, pixels_of
from plackett.models.packed import Packed

Layout = Literal["nchw", "nhwc"]


class Served(nn.Module):
    """The network with what its file takes in hand: bytes to normalised pictures, half precision, logits in float32.

    Args:
        network: copied to the CPU and put in evaluation mode.
        sight: gives mean and std.
        bytes_in: None reads normalised float32 pictures `[N, channels, height, width]`; a layout reads uint8 pictures.
        half: computes in float16.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, network: nn.Module, sight: Sight, bytes_in: Layout | None = None, half: bool = False) -> None:
        super().__init__()
        network = copy.deepcopy(network).cpu().eval().requires_grad_(False)
        self.network = network.half() if half else network.float()
        self.bytes_in, self.computes_in_half = bytes_in, half
        self.register_buffer("mean", channelwise(sight.mean), persistent=False)
        self.register_buffer("std", channelwise(sight.std), persistent=False)
        self.eval()

    def forward(self, pictures: Tensor) -> Tensor:
        x = pictures
        if self.bytes_in is not None:
            x = x.permute(0, 3, 1, 2) if self.bytes_in == "nhwc" else x
            x = (x.to(torch.float32) / 255 - self.mean) / self.std
        logits: Tensor = self.network(x.half() if self.computes_in_half else x)
        return logits.float()


def as_taken(checking: Checking, sight: Sight, bytes_in: Layout | None) -> tuple[Checking, Callable[[Tensor], Tensor]]:
    """Pictures to check with, and how the file takes them: as they are, or as bytes (and rounded to them)."""
    if bytes_in is None:
        return checking, lambda inputs: inputs
    rounded = Checking(normalised(pixels_of(checking.inputs, sight), sight), checking.source)
    if bytes_in == "nchw":
        return rounded, lambda inputs: pixels_of(inputs, sight)
    return rounded, lambda inputs: pixels_of(inputs, sight).permute(0, 2, 3, 1).contiguous()


@torch.no_grad()
def graph(served: Served, example: Tensor, spec: str) -> torch.export.ExportedProgram:
    """torch.export's program of `served`, for any number of pictures of the example's size."""
    two = example[:1].repeat(2, 1, 1, 1)
    try:
        with warnings.catch_warnings(action="ignore"):
            return torch.export.export(served, (two,), dynamic_shapes={"pictures": {0: torch.export.Dim("batch")}})
    except Exception as error:  # whatever the network's own code raises under the tracer, too
        raise ExportError(
            f"{spec} has no graph that torch can export ({first_line(error)}). Its code may depend neither on the "
            "values of pixels nor on how many pictures come; --to hub needs no graph."
        ) from error


def facts(packed: Packed, bytes_in: Layout | None, half: bool, compared: Compared) -> dict[str, Any]:
    """What a file says of itself, as JSON has it."""
    sight = packed.sight
    return {
        "model": packed.spec,
        "class_names": list(packed.classes),
        "input": f"uint8 {bytes_in.upper()}, 0 to 255" if bytes_in else "float32 NCHW, (value / 255 - mean) / std",
        "input_size": [len(sight.mean), sight.size, sight.size],
        "resize_shorter_side": sight.resized,
        "interpolation": f"{sight.interpolation}, antialiased",
        "crop": "center",
        "crop_pct": sight.crop,
        "mean": list(sight.mean),
        "std": list(sight.std),
        "normalisation": "inside the graph" if bytes_in else "before the graph",
        "channel_order": "RGB" if len(sight.mean) == 3 else "as trained",
        "output": "logits, float32",
        "precision": "float16" if half else "float32",
        "check_against_pytorch": compared.sentence(),
        "made_by": f"plackett {plackett.__version__}, torch {torch.__version__}",
    }


def layout(given: str | None) -> Layout | None:
    """The layout that a person asked for by name."""
    match given and given.lower():
        case None:
            return None
        case "nchw":
            return "nchw"
        case "nhwc":
            return "nhwc"
    raise InputError(f"There is no layout {given!r} of pictures; {did_you_mean(given, ('nchw', 'nhwc'))}.")


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200].rstrip('.')}" if lines else type(error).__name__
