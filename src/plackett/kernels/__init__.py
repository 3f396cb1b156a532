"""Implementations of PLD, and which of them a call takes.

>>> import torch
>>> print(why(torch.zeros(2, 3)))
eager: the student's logits are on the CPU, where PyTorch operations and a vectorised sort are fastest.
"""

from __future__ import annotations

from plackett.kernels.select import IMPLEMENTATIONS, pick, pick_sparse, pick_times, why

__all__ = ["IMPLEMENTATIONS", "pick", "pick_sparse", "pick_times", "why"]
