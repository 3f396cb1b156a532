"""Whether a file answers as the network does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from plackett.data.sight import Sight
from plackett.errors import PlackettError

# Of the largest logit: other orders of the same sums differ by about 1e-6 of it, half precision by about 1e-3.
TOLERANCE, HALF_TOLERANCE, HALF_AGREEMENT = 1e-3, 3e-2, 0.95
NOISE = 12


class ExportError(PlackettError):
    """A network could not be exported, or what was exported does not answer as the network does."""


class Checking(NamedTuple):
    """Pictures to check a file with: `inputs` normalised `[N, channels, size, size]`, and what they are."""

    inputs: Tensor
    source: str


class Compared(NamedTuple):
    """The largest difference of a logit, the largest logit, and the share of pictures with the same first class."""

    difference: float
    largest: float
    agreement: float
    pictures: int
    source: str

    def sentence(self) -> str:
        """
        >>> Compared(2e-6, 12.5, 1.0, 64, "64 pictures of pets/test").sentence()
        'largest logit difference 2.0e-06 (of logits up to 12.5), same first class 100.0 %, on 64 pictures of pets/test'
        """
        return (
            f"largest logit difference {self.difference:.1e} (of logits up to {self.largest:.3g}), same first class "
            f"{100 * self.agreement:.1f} %, on {self.source}"
        )


def noise(sight: Sight, n: int = NOISE) -> Checking:
    """Where there are no pictures: pixels drawn at random, the same each time."""
    shape = (n, len(sight.mean), sight.size, sight.size)
    pixels = torch.randint(256, shape, generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    return Checking(normalised(pixels, sight), f"{n} pictures of noise")


def normalised(pixels: Tensor, sight: Sight) -> Tensor:
    """uint8 `[N, channels, height, width]` as the network reads it."""
    return (pixels.float() / 255 - channelwise(sight.mean)) / channelwise(sight.std)


def pixels_of(inputs: Tensor, sight: Sight) -> Tensor:
    """The bytes that normalised pictures came from, rounded.

    >>> pixels_of(torch.tensor([[[[-2.0]]], [[[2.0]]]]), Sight(1, (0.5,), (0.25,))).flatten()
    tensor([  0, 255], dtype=torch.uint8)
    """
    whole = ((inputs * channelwise(sight.std) + channelwise(sight.mean)) * 255).round()
    return whole.clamp(0, 255).to(torch.uint8)


def channelwise(values: tuple[float, ...]) -> Tensor:
    return torch.tensor(values, dtype=torch.float32).view(1, -1, 1, 1)


@torch.no_grad()
def compare(
    network: nn.Module, run: Callable[[Tensor], Tensor], checking: Checking, file: Path, half: bool = False
) -> Compared:
    """What `run` says of the pictures against the network on the CPU, in batches of several sizes.

    Raises ExportError where they differ by more than rounding explains; `half` allows for float16's.
    """
    parts = [(network(inputs).float(), run(inputs)) for inputs in batches(checking.inputs)]
    ours, theirs = (torch.cat(each) for each in zip(*parts, strict=True))
    if ours.shape != theirs.shape:
        raise ExportError(
            f"{file.name} gives logits {list(theirs.shape)} where the network gives {list(ours.shape)}; not written."
        )
    if not theirs.isfinite().all():
        why = "float16 ends at 65,504: leave out --fp16" if half else "look at the network's weights"
        raise ExportError(f"{file.name} gives logits that are not finite ({why}); not written.")
    same = (ours.argmax(-1) == theirs.argmax(-1)).double().mean().item()
    found = Compared((ours - theirs).abs().max().item(), ours.abs().max().item(), same, len(ours), checking.source)
    allowed = (HALF_TOLERANCE if half else TOLERANCE) * found.largest
    if not found.difference <= allowed or (half and same < HALF_AGREEMENT):
        advice = "leave out --fp16" if half else "try another --opset, or another form with --to"
        raise ExportError(
            f"{file.name} does not answer as the network does: {found.sentence()}; at most {allowed:.1e} is allowed. "
            f"Not written; {advice}."
        )
    return found


def batches(inputs: Tensor) -> list[Tensor]:
    """1, 3, then 8 pictures at a time: what was traced with one number must run with any.

    >>> [len(batch) for batch in batches(torch.zeros(13, 1))]
    [1, 3, 8, 1]
    """
    rest = torch.split(inputs[4:], 8)
    return [batch for batch in (inputs[:1], inputs[1:4], *rest) if len(batch)]
