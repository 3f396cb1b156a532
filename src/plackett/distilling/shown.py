"""Pictures that networks are tested on: read once for all of them, and kept in memory where they fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from plackett.data.loading import Bad, Viewed
from plackett.data.making import Maker, Wanted
from plackett.data.sight import Sight
from plackett.data.source import Source
from plackett.evaluation import predict_batches
from plackett.training import Mode

KEEP = 2**30  # bytes


class Shown:
    """Labelled pictures as `sight` sees them; those that cannot be read are left out, and told to `on_bad`."""

    def __init__(
        self,
        source: Source,
        sight: Sight,
        mode: Mode,
        *,
        device: torch.device,
        workers: int = 0,
        size: int = 128,
        bad_limit: int | None = None,
        on_bad: Callable[[Bad], None] | None = None,
    ) -> None:
        self._viewed = Viewed(
            source, sight, size=size, workers=workers, device=device, bad_limit=bad_limit, on_bad=on_bad, keep=KEEP
        )
        self._mode, self._source, self._sight, self.device = mode, source, sight, device

    @property
    def classes(self) -> tuple[str, ...]:
        return self._source.classes

    @property
    def targets(self) -> Tensor:
        return self._viewed.targets.to(self.device)

    def __len__(self) -> int:
        return len(self._viewed)

    def predictions(self, networks: Mapping[str, nn.Module]) -> dict[str, Tensor]:
        """Logits `[n, C]` float32 of each network, in evaluation mode; its mode is restored."""
        with self._mode.precision(self.device):
            return predict_batches(networks, (batch.inputs for batch in self._viewed.batches()))

    def one(self) -> Tensor:
        side = self._sight.size
        return torch.zeros(1, len(self._sight.mean), side, side, device=self.device)

    def pixels(self, which: NDArray[Any]) -> NDArray[np.uint8]:
        """`[P, size, size, 3]` of these of the readable ones."""
        bad = {each.index for each in self._viewed.bad}
        readable = [index for index in range(len(self._source)) if index not in bad]
        wanted = Wanted(tuple(readable[place] for place in which.tolist()), (0,) * len(which))
        return Maker(self._source, self._sight, None, replace=False)[wanted].pixels.numpy()

    def close(self) -> None:
        self._viewed.close()
