"""What the kernels become on an H200, without one: `python -m benchmarks.compiled`.

Compiles every launch for sm_90 and reads the machine code: registers, bytes spilled, and instructions by kind. Nothing
runs. Counts are of the program as written out: a loop's body counts once however often it is taken.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

KINDS = {
    "shuffle": r"SHFL",
    "shared": r"(LDS|STS)",
    "load": r"LDG",
    "16-byte load": r"LDG\S*\.128",
    "store": r"STG",
    "16-byte store": r"STG\S*\.128",
    "local": r"(LDL|STL)",
    "barrier": r"BAR",
    "special": r"MUFU",
}


@contextmanager
def compiling_for_hopper(found: list[Any]) -> Any:
    """Kernels launched inside are compiled for sm_90 and put into `found`; no launch happens."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    class Absent:
        """A device to compile for, that is not there."""

        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int) -> int:
            return 0

    run = JITFunction.run

    def compiled(self: Any, *args: Any, warmup: bool = False, **kwargs: Any) -> Any:
        made = run(self, *args, warmup=True, **kwargs)
        found.append(made)
        return made

    before = driver._active
    driver.set_active(Absent())
    JITFunction.run = compiled
    try:
        yield
    finally:
        JITFunction.run = run
        driver._active = before


def disassembled(kernel: Any) -> str:
    from triton.backends import nvidia

    tools = Path(nvidia.__file__).parent / "bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        usage = subprocess.run(
            [tools / "cuobjdump", "-res-usage", file.name], capture_output=True, text=True, check=True
        )
        code = subprocess.run([tools / "nvdisasm", "-c", file.name], capture_output=True, text=True, check=True)
    return usage.stdout + usage.stderr + code.stdout


def counted(kernel: Any) -> dict[str, Any]:
    text = disassembled(kernel)
    operations = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]+)", text, re.MULTILINE)
    kinds = Counter({name: sum(bool(re.match(pattern, op)) for op in operations) for name, pattern in KINDS.items()})
    found = re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)", text)
    registers, stack, shared = (int(x) for x in found.groups()) if found else (-1, -1, -1)
    return {
        "warps": kernel.metadata.num_warps,
        "registers": registers,
        "stack bytes": stack,
        "shared bytes": max(shared, kernel.metadata.shared),
        "instructions": len(operations),
        **kinds,
    }


def launches() -> dict[str, Callable[[], object]]:
    """Name -> a call that launches what it names."""
    from plackett.kernels.launch import launch_exact, launch_topk
    from plackett.kernels.launch_after import launch_times, launch_total
    from plackett.kernels.launch_long import launch_long

    def given(launch: Any, classes: int, dtype: torch.dtype, kept: int | None = None) -> Callable[[], object]:
        s, t = torch.zeros(16, classes, dtype=dtype), torch.zeros(16, classes, dtype=dtype)
        y = torch.zeros(16, dtype=torch.int64)
        return lambda: launch(s, t, y, None, 1.0, "teacher", None, None, kept or classes, True)

    def every(launch: Any, classes: int, kept: int) -> Callable[[], object]:
        """Masked rows, weights by rank, a label's least weight, narrow labels, rows one number apart."""
        s, t = (torch.zeros(classes, 16, dtype=torch.float16).t() for _ in range(2))
        y, keep = torch.zeros(16, dtype=torch.int32), torch.ones(16, dtype=torch.bool)
        return lambda: launch(s, t, y, keep, 1.0, "given", torch.zeros(classes), 0.5, kept, True)

    def without(launch: Any, classes: int) -> Callable[[], object]:
        """No labels and no gradient."""
        s, t = (torch.zeros(16, classes, dtype=torch.bfloat16) for _ in range(2))
        return lambda: launch(s, t, None, None, 1.0, "position", None, None, min(64, classes), False)

    def scaled(classes: int, dtype: torch.dtype) -> Callable[[], object]:
        return lambda: launch_times(torch.zeros(16, classes, dtype=dtype), torch.zeros(()), count=torch.ones(()))

    return {
        "exact, 10 fp32": given(launch_exact, 10, torch.float32),
        "exact, 100 fp32": given(launch_exact, 100, torch.float32),
        "exact, 8192 fp32": given(launch_exact, 8192, torch.float32),
        "exact, 8192 bf16": given(launch_exact, 8192, torch.bfloat16),
        "exact, 1000 fp16, every option": every(launch_exact, 1000, 500),
        "exact, 1000 bf16, without": without(launch_exact, 1000),
        "first 64 of 4096 fp32": given(launch_topk, 4096, torch.float32, 64),
        "first 64 of 32000 fp16, every option": every(launch_topk, 32000, 64),
        "first 64 of 152064 bf16": given(launch_topk, 152064, torch.bfloat16, 64),
        "long, 152064 bf16": given(launch_long, 152064, torch.bfloat16),
        "long, 9000 fp32": given(launch_long, 9000, torch.float32),
        "long, 32000 fp16, every option": every(launch_long, 32000, 5000),
        "long, 32000 bf16, without": without(launch_long, 32000),
        "times, 1000 bf16": scaled(1000, torch.bfloat16),
        "times, 152064 bf16": scaled(152064, torch.bfloat16),
        "total of 128": lambda: launch_total(torch.zeros(128), torch.ones(128, dtype=torch.bool), True),
        "total of 65536": lambda: launch_total(torch.zeros(65536), torch.ones(65536, dtype=torch.bool), True),
        "exact, 1000 bf16": given(launch_exact, 1000, torch.bfloat16),
        "exact, 1000 fp32": given(launch_exact, 1000, torch.float32),
        "exact, 4096 fp32": given(launch_exact, 4096, torch.float32),
        "first 64 of 128256 bf16": given(launch_topk, 128256, torch.bfloat16, 64),
        "long, 32000 bf16": given(launch_long, 32000, torch.bfloat16),
        "long, 128256 bf16": given(launch_long, 128256, torch.bfloat16),
        "long, 128256 fp32": given(launch_long, 128256, torch.float32),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="a pattern of the launches' names")
    parser.add_argument("--code", type=Path, help="a folder for the machine code")
    chosen = parser.parse_args()
    console = Console(width=200)
    table = Table(box=None)
    for i, (name, call) in enumerate((n, c) for n, c in launches().items() if re.search(chosen.only, n)):
        found: list[Any] = []
        with compiling_for_hopper(found):
            call()
        seen = set()
        for kernel in found:
            if kernel.hash in seen:
                continue
            seen.add(kernel.hash)
            row = {"launch": name, "kernel": kernel.metadata.name, **counted(kernel)}
            if not table.columns:
                for heading in row:
                    table.add_column(heading, justify="left" if heading in ("launch", "kernel") else "right")
            table.add_row(*(str(v) for v in row.values()))
            if chosen.code:
                chosen.code.mkdir(parents=True, exist_ok=True)
                (chosen.code / f"{i}-{kernel.metadata.name}.sass").write_text(disassembled(kernel))
    console.print(table)


if __name__ == "__main__":
    main()
