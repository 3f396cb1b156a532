"""Grey pictures, each class a shade of its own, and a teacher that reads the shade: every figure follows by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor, nn

from plackett.data.sight import Sight
from plackett.models.named import Named

SHADES = tuple(range(10, 250, 20))  # of 255, a class each: 12 classes
SIGHT = Sight(16, (0.0,) * 3, (1.0,) * 3, crop=1.0)
SHARP = 400.0


def shade_names(n: int = len(SHADES)) -> tuple[str, ...]:
    return tuple(f"shade-{k:02d}" for k in range(n))


class ByShade(nn.Module):
    """`w (2 p c_k - c_k^2)`, the highest where the mean value p of a picture is nearest to the shade c_k of the class.

    Args:
        num_classes: of the first so many shades.
        scale: a picture is shown as `scale p - shift`.
        shift: likewise.
        sharp: w; the higher, the surer.
    """

    def __init__(self, num_classes: int, scale: float = 1.0, shift: float = 0.0, sharp: float = SHARP) -> None:
        super().__init__()
        self.fc = nn.Linear(1, num_classes)
        shades = torch.tensor(SHADES[:num_classes]) / 255
        with torch.no_grad():
            self.fc.weight.copy_((2 * sharp / scale * shades).unsqueeze(1))
            self.fc.bias.copy_(sharp * (2 * shift / scale * shades - shades**2))

    def forward(self, pictures: Tensor) -> Tensor:
        return self.fc(pictures.mean((1, 2, 3)).unsqueeze(-1))  # type: ignore[no-any-return]


def by_shade(num_classes: int = len(SHADES), sharp: float = SHARP) -> nn.Module:
    """A factory as people have them."""
    return ByShade(num_classes, sharp=sharp)


def logits_of(shades: Sequence[int], classes: int = len(SHADES), sharp: float = SHARP) -> Tensor:
    """What `ByShade` says of pictures of these shades, in float64 and from its definition."""
    p, c = torch.tensor(shades).double()[:, None] / 255, torch.tensor(SHADES[:classes]).double() / 255
    return sharp * (2 * p * c - c**2)


def a_teacher(
    network: nn.Module | None = None, outputs: int = len(SHADES), names: Sequence[str] | None = None
) -> Named:
    named = None if names is None else tuple(names)
    return Named(network or ByShade(outputs), "by_shade", SIGHT, outputs, named, weights="a file")


@dataclass(frozen=True)
class Grey:
    """Pictures of one shade each; `broken` ones cannot be read."""

    shades: tuple[int, ...]
    targets: Tensor
    classes: tuple[str, ...]
    broken: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.shades)

    def name(self, index: int) -> str:
        return f"{index}.png"

    def read(self, index: int) -> Image.Image:
        if index in self.broken:
            raise OSError("broken")
        return Image.new("RGB", (24, 20), (self.shades[index],) * 3)

    def fingerprint(self) -> str:
        return repr(self)

    def labelled(self, *targets: int) -> Grey:
        return replace(self, targets=torch.tensor(targets))


def grey(each: int = 4, classes: Sequence[str] | None = None, shades: Sequence[int] = SHADES) -> Grey:
    """`each` pictures of every class, one class after the other."""
    shown = tuple(shade for shade in shades for _ in range(each))
    return Grey(shown, torch.arange(len(shades)).repeat_interleave(each), tuple(classes or shade_names(len(shades))))


def folder(root: Path, each: int = 4, classes: Sequence[str] | None = None, splits: Sequence[str] = ("val",)) -> Path:
    """The same as files: shades that differ by one, so that no two files of a class are the same."""
    for split in splits:
        for name, shade in zip(classes or shade_names(), SHADES, strict=False):
            place = root / split / name
            place.mkdir(parents=True)
            for i in range(each):
                Image.new("RGB", (24, 20), (shade + i,) * 3).save(place / f"{i}.png")
    return root
