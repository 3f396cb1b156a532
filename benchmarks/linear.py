"""A language model's last layer and its loss: `python -m benchmarks.linear`.

Forward and backward from what the student's and the teacher's last layers read, to the gradients of hidden and weight:
the whole logits, `fused_linear_pld`, and KD in the same chunks, compiled. Extra memory is what a step holds at most
beyond its inputs, gradients included.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from benchmarks import written
from benchmarks.measure import extra_mib, time_steps
from plackett import functional
from plackett.choice import times
from plackett.experiments import surroundings
from plackett.functional import LinearTeacher
from plackett.kernels import pick_times
from plackett.losses.linear import Options, linear_parts, tokens_a_chunk
from plackett.losses.plackett_luce import Rows
from plackett.losses.sparse import eager_sparse_rows

RESULTS = Path(__file__).parent / "results"
TAU = 4.0


@torch.compile(dynamic=False)
def kd_of(student: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor]:
    """KD a row, tau^2 KL(q || p), and its gradient tau (p - q)."""
    log_p, log_q = ((x.float() / TAU).log_softmax(-1) for x in (student, teacher))
    p, q = log_p.exp(), log_q.exp()
    return TAU**2 * (q * (log_q - log_p)).sum(-1), (TAU * (p - q)).to(student.dtype)


def kd_rows(student: Tensor, teacher: Tensor, *_: Any, **__: Any) -> Rows:
    loss, gradient = kd_of(student, teacher)
    return Rows(loss, gradient, torch.zeros_like(loss))


def chunked_kd(hidden: Tensor, weight: Tensor, teacher: LinearTeacher, chunk: int) -> tuple[Tensor, Tensor, Tensor]:
    """The mean, and the gradients of hidden and weight, through the loop that the fused layer takes."""
    multiply = pick_times("auto", hidden) if hidden.is_cuda else times
    options = Options(1.0, None, None, chunk, kd_rows, eager_sparse_rows, multiply)
    factor = torch.full((), 1 / len(hidden), device=hidden.device)
    with torch.no_grad():
        parts = linear_parts(hidden, weight, None, teacher, None, None, factor, (True, True, False), options)
    assert parts.hidden is not None
    assert parts.weight is not None
    return (parts.loss * factor).sum(), parts.hidden, parts.weight


def contenders(
    hidden: Tensor, weight: Tensor, teacher: LinearTeacher, y: Tensor, chunk: int
) -> dict[str, Callable[[], object]]:
    def step(loss: Callable[[], Tensor]) -> Callable[[], object]:
        return lambda: torch.autograd.grad(loss(), (hidden, weight))

    def whole(top_k: int | None) -> Callable[[], object]:
        return step(
            lambda: functional.pld(linear(hidden, weight), linear(teacher.hidden, teacher.weight), y, top_k=top_k)
        )

    def fused(top_k: int | None) -> Callable[[], object]:
        return step(lambda: functional.fused_linear_pld(hidden, weight, teacher, y, top_k=top_k, chunk=chunk))

    few = min(64, len(weight))
    return {
        "KD in chunks, compiled": lambda: chunked_kd(hidden, weight, teacher, chunk),
        "PLD of whole logits": whole(None),
        "PLD of whole logits, first 64": whole(few),
        "fused PLD": fused(None),
        "fused PLD, first 64": fused(few),
    }


def main() -> None:
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=8192 if cuda else 64)
    parser.add_argument("--width", type=int, default=2048 if cuda else 32)
    parser.add_argument("--classes", type=int, default=128256 if cuda else 2000)
    parser.add_argument("--chunk", type=int, help="tokens at a time [default: as fused_linear_pld has it]")
    parser.add_argument("--only", default="", help="a pattern of the contenders' names")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the CSV goes")
    given = parser.parse_args()
    device, dtype = ("cuda", torch.bfloat16) if cuda else ("cpu", torch.float32)
    chunk = given.chunk or tokens_a_chunk(given.classes)

    torch.manual_seed(0)
    hidden, theirs = (torch.randn(given.tokens, given.width, device=device).to(dtype) for _ in range(2))
    weight, of_teacher = (
        (3 * torch.randn(given.classes, given.width, device=device) / given.width**0.5).to(dtype) for _ in range(2)
    )
    y = torch.randint(0, given.classes, (given.tokens,), device=device)
    hidden.requires_grad_(), weight.requires_grad_()
    calls = contenders(hidden, weight, LinearTeacher(theirs, of_teacher), y, chunk)

    chip = torch.cuda.get_device_name() if cuda else surroundings.processor()
    versions = surroundings.versions()
    print(f"{chip}, torch {versions['torch']}; {given.tokens} tokens, width {given.width}, {given.classes} classes, "
          f"{str(dtype).removeprefix('torch.')}, chunks of {chunk}", flush=True)  # fmt: skip
    rows: list[dict[str, Any]] = []
    path = written.place(given.out, "linear", chip, versions["torch"])
    for name, call in calls.items():
        if not re.search(given.only, name):
            continue
        timing = time_steps([call], device, seconds=2.0, most=50)
        rows.append({
            "what": name, "tokens": given.tokens, "width": given.width, "classes": given.classes, "chunk": chunk,
            "dtype": str(dtype).removeprefix("torch."), "median_ms": round(timing.median, 3),
            "q25_ms": round(timing.low, 3), "q75_ms": round(timing.high, 3), "n": timing.n,
            "extra_mib": round(extra_mib(call, device), 1), "device": chip,
            **{key: versions[key] for key in ("plackett", "python", "torch")}, "commit": surroundings.commit() or "",
        })  # fmt: skip
        print(f"  {name:<32} {timing.median:9.2f} ms ({timing.low:.2f} to {timing.high:.2f}, n = {timing.n})  "
              f"{rows[-1]['extra_mib']:>9} MiB", flush=True)  # fmt: skip
        written.write(rows, path)  # after each, for a run may be cut short
    print(f"written to {path}")


if __name__ == "__main__":
    main()
