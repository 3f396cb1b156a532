"""A teacher's file: the same bytes in every process, since cells are told apart by them."""

from __future__ import annotations

import subprocess
import sys

from safetensors.torch import load
from torch import arange, equal, ones

from plackett.experiments.teachers import packed

CODE = """
import hashlib, torch
from plackett.experiments.teachers import packed
made = packed({"w": torch.arange(6).reshape(2, 3), "b": torch.ones(2)}, {"network": "café", "classes": "10", "z": "1"})
print(hashlib.sha256(made).hexdigest())
"""


def test_the_same_teacher_is_the_same_file_in_every_process() -> None:
    """Six processes, each with an order of its own: all alike by luck once in thousands of times."""
    runs = [subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True) for _ in range(6)]
    assert len({run.stdout for run in runs}) == 1


def test_what_is_packed_is_read_back() -> None:
    tensors = {"w": arange(6).reshape(2, 3).float(), "b": ones(2).half()}
    back = load(packed(tensors, {"network": "café", "classes": "10"}))
    assert all(equal(back[name], tensor) for name, tensor in tensors.items())
