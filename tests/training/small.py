"""A small cohort of convolutional students on pictures that stay on the device, for tests of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from plackett.data import Normalise, Pictures, ResidentBatches
from plackett.objectives import Objective
from plackett.teachers import LiveTeacher
from plackett.training import Recipe, Student

SIZE, BATCH = 40, 8
RECIPE = Recipe(epochs=4, batch_size=BATCH, learning_rate=5e-3, weight_decay=0.1)
OBJECTIVES: dict[str, dict[str, Any]] = {
    "CE": {"ce": 1.0},
    "KD": {"ce": 0.1, "kd": {"weight": 0.9, "temperature": 4.0}},
    "PLD τ=4": {"pld": {"temperature": 4.0}},
}


class Net(nn.Module):
    """With a norm, whose statistics must be kept, and dropout, whose random numbers must be the student's own."""

    def __init__(self, dropout: float = 0.3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.fc(self.drop(self.norm(self.conv(x)).relu().mean((2, 3))))
        return logits


def plain() -> nn.Module:
    return Net(dropout=0.0)


def pictures(device: str = "cpu") -> Pictures:
    generator = torch.Generator().manual_seed(3)
    targets = torch.arange(SIZE) % 4
    pixels = torch.randint(0, 120, (SIZE, 3, 8, 8), generator=generator) + 40 * (targets == 1)[:, None, None, None]
    pixels[targets == 2, 0] += 100
    return Pictures(pixels.to(torch.uint8), targets, ("a", "b", "c", "d")).to(device)


def stream(device: str = "cpu", size: int = BATCH, **options: Any) -> ResidentBatches:
    return ResidentBatches(pictures(device), size, 1, Normalise((0.4,) * 3, (0.3,) * 3), padding=1, **options)


def teacher(device: str = "cpu") -> LiveTeacher:
    torch.manual_seed(9)
    return LiveTeacher(plain().to(device), 4)


def students(
    names: Sequence[str] = tuple(OBJECTIVES), build: Any = Net, device: str = "cpu", recipe: Recipe = RECIPE
) -> list[Student]:
    steps = len(stream(device))
    return [
        Student.make(name, build, Objective(OBJECTIVES[name]), recipe, steps_per_epoch=steps, seed=0, device=device)
        for name in names
    ]


def weights(student: Student) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in student.model.state_dict().items()}


def same(one: Student, other: Student) -> bool:
    mine, theirs = weights(one), weights(other)
    return all(torch.equal(mine[name], theirs[name]) for name in mine)


def folder_weights(folder: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    return {f"{path.name} {name}": t for path in sorted(folder.glob("final-*")) for name, t in load_file(path).items()}
