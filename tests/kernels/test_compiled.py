"""Every kernel becomes code for an H200 on a machine without one, within what a multiprocessor has."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytest.importorskip("triton")
if os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("kernels are interpreted in this process, not compiled", allow_module_level=True)

from benchmarks.compiled import compiling_for_hopper, counted, launches

NAMES = ["exact, 1000 bf16", "first 64 of 128256 bf16", "long, 32000 bf16", "long, 9000 fp32", "times, 152064 bf16"]
NAMES += ["total of 65536"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_launch_compiles_and_fits(name: str) -> None:
    found: list[Any] = []
    with compiling_for_hopper(found):
        launches()[name]()
    assert len(found) == (4 if name.startswith("long") else 1)
    for kernel in found:
        figures = counted(kernel)
        threads = 32 * figures["warps"]
        assert 0 < figures["registers"] * threads <= 65_536  # of a multiprocessor
        assert figures["shared bytes"] <= 48 * 1024  # static; more would have to be asked for
        assert figures["stack bytes"] <= 2048, "far more is spilled than when this was last looked at"
        declared = kernel.asm["ptx"].count(".b8 plackett_words[")
        assert declared <= 1, "the buffer was declared twice, and its halves would not be one"
        if kernel.metadata.name == "runs_kernel":
            # Ten times as many where loads are laid out otherwise than `deal` expects them.
            assert figures["shared"] < 500
        if kernel.metadata.name == "times_kernel":
            assert figures["16-byte load"] == figures["load"] - 2  # the others are what multiplies and what divides
            assert figures["16-byte store"] == figures["store"]
