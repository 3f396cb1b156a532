"""What a recipe trains on: pictures on a device, their batches, networks for them, and how to test many at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from plackett import devices, models
from plackett.data import Batches, Pictures, ResidentBatches, Shift, Stream, cifar100, derive, digits
from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.evaluation import predict_all
from plackett.experiments import surroundings
from plackett.experiments.recipes import Recipe as RecipeFile
from plackett.experiments.recipes import Training
from plackett.training import Mode, Recipe


@dataclass(frozen=True)
class Task:
    """`train` is the student's, `teaching` the teacher's; `test` is normalised already."""

    name: str
    train: Pictures
    teaching: Pictures
    test: Pictures
    fingerprint: str
    mode: Mode

    @property
    def device(self) -> torch.device:
        return self.test.device

    @property
    def classes(self) -> int:
        return len(self.test.classes)

    @property
    def sight(self) -> Sight:
        """How its networks see a picture."""
        return cifar100.SIGHT if self.name == "cifar100" else digits.SIGHT

    @property
    def where(self) -> str:
        return surroundings.where(self.device)

    def stream(self, training: Training, seed: int, *, teacher: bool = False) -> Stream:
        pictures = self.teaching if teacher else self.train
        seed = derive(seed, "teacher batches" if teacher else "batches")
        if self.name == "cifar100":
            return ResidentBatches(
                pictures,
                training.batch_size,
                seed,
                cifar100.NORMALISE,
                padding=training.padding,
                flip=training.flip,
                drop_last=training.drop_last,
            )
        if training.flip or training.drop_last:
            raise InputError("Digits are neither flipped nor dropped: take flip and drop_last away from the recipe.")
        return Batches(pictures, training.batch_size, seed, Shift(training.padding) if training.padding else None)

    def readable(self, pictures: Pictures) -> Pictures:
        """As a network reads them, without augmentation."""
        return cifar100.NORMALISE.pictures(pictures) if self.name == "cifar100" else pictures

    @property
    def targets(self) -> Tensor:
        return self.test.targets

    def predictions(self, networks: Mapping[str, nn.Module]) -> dict[str, Tensor]:
        return predict_all(networks, self.test, bfloat16=self.mode.bfloat16)

    def network(self, name: str) -> nn.Module:
        options = {"float32_head": True} if self.name == "cifar100" else {}
        return models.create(name, classes=self.classes, **options)


def load(recipe: RecipeFile, folder: Path | None, device: str | None = None) -> Task:
    """The data of a recipe, on a GPU where there is one."""
    chosen = devices.chosen(device)
    if recipe.data == "digits":
        held = digits.load()
        train, teaching, test = held.student.to(chosen), held.teacher.to(chosen), held.test.to(chosen)
        mark = f"{derive(train.fingerprint(), test.fingerprint()):016x}"
        return Task("digits", train, teaching, test, mark, Mode())
    data = cifar100.load(folder)
    mark = f"{derive(data.train.fingerprint(), data.test.fingerprint()):016x}"
    train = data.train.to(chosen)
    test = cifar100.NORMALISE.pictures(data.test.to(chosen))
    mode = Mode.best(chosen)
    if mode.channels_last:
        test = Pictures(test.inputs.contiguous(memory_format=torch.channels_last), test.targets, test.classes)
    return Task("cifar100", train, train, test, mark, mode)


def optimisation(training: Training) -> Recipe:
    return Recipe(training.epochs, training.batch_size, training.learning_rate, training.weight_decay)
