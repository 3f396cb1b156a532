"""A small CIFAR-100 for tests: slices of the real one where it stands beside the checkout, else generated pictures.

Both have the official layouts, a few pictures of every class. The whole real one is there as well where it is at hand.
"""

from __future__ import annotations

import json
import pickle
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.data.official import RECORD, Part

SHEETS = Path(__file__).parents[2] / "shared" / "data" / "cifar100"
KIND = "real slices of ../shared/data/cifar100" if (SHEETS / "unpack.py").exists() else "generated pictures"
PER_CLASS = {"train": 10, "test": 2}


@dataclass(frozen=True)
class Cifar:
    """`binary` and `python` are folders in the official layouts; `parts` says what they hold."""

    binary: Path
    python: Path
    whole: Path | None
    parts: tuple[Part, ...] = tuple(Part(name, 100 * count, None) for name, count in PER_CLASS.items())


def make(folder: Path) -> Cifar:
    whole = None
    if KIND.startswith("real"):
        subprocess.run(
            [sys.executable, str(SHEETS / "unpack.py"), str(folder / "whole")], check=True, capture_output=True
        )
        whole = folder / "whole" / "cifar-100-binary"
    binary, python = folder / "cifar-100-binary", folder / "cifar-100-python"
    binary.mkdir(), python.mkdir()
    names = _names()
    for level, said in names.items():
        (binary / f"{level}_label_names.txt").write_text("\n".join(said) + "\n")
    (python / "meta").write_bytes(old_pickle({f"{level}_label_names": said for level, said in names.items()}))
    for part, count in PER_CLASS.items():
        rows = _generated(count) if whole is None else _sliced(whole / f"{part}.bin", count)
        rows = np.random.default_rng(0).permutation(rows)  # the official files are in no order
        (binary / f"{part}.bin").write_bytes(rows.tobytes())
        held = {"data": rows[:, 2:].copy(), "fine_labels": rows[:, 1].tolist(), "coarse_labels": rows[:, 0].tolist()}
        (python / part).write_bytes(old_pickle(held))
    return Cifar(binary, python, whole)


def _names() -> dict[str, list[str]]:
    if KIND.startswith("real"):
        said = json.loads((SHEETS / "labels.json").read_text())
        return {level: said[level] for level in ("fine", "coarse")}
    return {"fine": [f"class_{i}" for i in range(100)], "coarse": [f"superclass_{i}" for i in range(20)]}


def _sliced(path: Path, count: int) -> npt.NDArray[np.uint8]:
    rows = np.fromfile(path, np.uint8).reshape(100, -1, RECORD)  # in class order
    return rows[:, :count].reshape(-1, RECORD)


def _generated(count: int) -> npt.NDArray[np.uint8]:
    """Smooth pictures whose colours depend on the class, so that a network can learn something."""
    random = np.random.default_rng(count)
    fine = np.repeat(np.arange(100, dtype=np.uint8), count)
    colour = np.random.default_rng(7).uniform(40, 215, (100, 3))[fine]
    wave = np.sin(np.linspace(0, 6, 32) * (1 + fine[:, None] % 5))
    pictures = colour[:, :, None, None] + 30 * wave[:, None, :, None] + random.normal(0, 12, (len(fine), 3, 32, 32))
    rows = [(fine // 5)[:, None], fine[:, None], pictures.clip(0, 255).astype(np.uint8).reshape(len(fine), -1)]
    return np.concatenate(rows, axis=1)


def old_pickle(held: dict[str, Any]) -> bytes:
    """As Python 2 wrote the official files: protocol 2, text as bytes, arrays through `numpy.core.multiarray`."""

    def text(value: bytes) -> bytes:
        return b"T" + struct.pack("<i", len(value)) + value

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    def encode(value: Any) -> bytes:
        if isinstance(value, str):
            return text(value.encode())
        if isinstance(value, int):
            return number(value)
        if isinstance(value, list):
            return b"](" + b"".join(map(encode, value)) + b"e"
        dtype = b"cnumpy\ndtype\n(" + text(b"u1") + number(0) + number(1) + b"tR("
        dtype += number(3) + text(b"|") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
        made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(" + number(0) + b"t" + text(b"b") + b"tR"
        shape = b"".join(map(number, value.shape))
        return made + b"(" + number(1) + b"(" + shape + b"t" + dtype + b"\x89" + text(value.tobytes()) + b"tb"

    items = b"".join(encode(key) + encode(value) for key, value in held.items())
    made = b"\x80\x02}(" + items + b"u."
    assert set(pickle.loads(made, encoding="latin1")) == set(held)
    return made
