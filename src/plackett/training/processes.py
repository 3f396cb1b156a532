"""Several processes, as `torchrun` starts them: each takes its part of every batch, and gradients are averaged.

What a loss or a norm computes over a batch (DIST's intra-class term, similarities, batch statistics) is then over a
process's own part. Weights stay the same in all of them; running statistics are those of the first.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from plackett.data import Batch, derive
from plackett.errors import InputError


@dataclass(frozen=True)
class Processes:
    """Which of how many this is.

    >>> Processes.here()
    Processes(rank=0, world=1)
    """

    rank: int = 0
    world: int = 1

    @classmethod
    def here(cls) -> Processes:
        """Of torch's process group, where the caller has made one."""
        if not (dist.is_available() and dist.is_initialized()):
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def several(self) -> bool:
        return self.world > 1

    @property
    def first(self) -> bool:
        """The one that writes files and speaks."""
        return self.rank == 0

    def check(self, pictures: int, size: int, steps: int) -> None:
        """Every process must find a picture in every batch."""
        least = min(size, pictures - (steps - 1) * size)
        if least < self.world:
            raise InputError(
                f"A batch of {least} pictures cannot be divided among {self.world} processes; "
                "take larger batches, fewer processes, or drop_last=True."
            )

    def part(self, batch: Batch) -> Batch:
        """Every `world`-th picture, from that of this rank on."""
        if not self.several:
            return batch
        rows = slice(self.rank, None, self.world)
        return Batch(batch.inputs[rows], batch.targets[rows], batch.indices[rows], batch.epoch)

    def random_state(self, state: Tensor, epoch: int) -> Tensor:
        """Random numbers of this process in that epoch, from the state that all of them began with."""
        mark = hashlib.blake2b(state.numpy().tobytes(), digest_size=8).hexdigest()
        generator = torch.Generator().manual_seed(derive(mark, "process", self.rank, epoch))
        return generator.get_state()

    def share(self, part: int, batch: int) -> float:
        """What a mean over a part counts in the mean over a batch, times the processes that DDP will divide by."""
        return part / batch * self.world

    def added(self, values: Tensor) -> Tensor:
        """The sum over processes, in place."""
        if self.several:
            dist.all_reduce(values)
        return values

    def any(self, said: bool, device: torch.device) -> bool:
        """Whether one of them says so: what all must do together is not left to each one's clock.

        >>> Processes().any(True, torch.device("cpu"))
        True
        """
        if not self.several:
            return said
        return bool(self.added(torch.tensor(float(said), device=device)) > 0)

    def __str__(self) -> str:
        return f"{self.world} processes, each with a part of every batch" if self.several else "one process"
