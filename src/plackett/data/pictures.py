"""Labelled pictures that live on one device as two tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from plackett.errors import InputError


@dataclass(frozen=True)
class Pictures:
    """`inputs` `[N, channels, height, width]` (float or uint8), `targets` `[N]` int64, and the name of every class."""

    inputs: Tensor
    targets: Tensor
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.targets):
            raise InputError(f"There are {len(self.inputs)} pictures and {len(self.targets)} labels; they must match.")
        if len(self.targets) and not 0 <= int(self.targets.min()) <= int(self.targets.max()) < len(self.classes):
            low, high = int(self.targets.min()), int(self.targets.max())
            raise InputError(f"Labels run from {low} to {high}, but there are {len(self.classes)} classes.")

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def device(self) -> torch.device:
        return self.inputs.device

    def to(self, device: torch.device | str) -> Pictures:
        return Pictures(self.inputs.to(device), self.targets.to(device), self.classes)

    def subset(self, indices: Sequence[int] | Tensor) -> Pictures:
        chosen = torch.as_tensor(indices, dtype=torch.long, device=self.device)
        return Pictures(self.inputs[chosen], self.targets[chosen], self.classes)

    def fingerprint(self) -> str:
        """SHA-256 over values, shapes and class names: two runs with the same fingerprint saw the same data."""
        digest = hashlib.sha256(repr((tuple(self.inputs.shape), self.classes)).encode())
        for tensor in (self.inputs, self.targets):
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()
