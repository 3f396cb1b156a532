"""Launches for rows past what fits on chip: sorted runs, cuts through them, the parts between, and classes again."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from plackett.kernels.launch import _WARP, MODES, SPARE_BITS, alignment
from plackett.kernels.launching import flags, has_ptx, interpreted, start, where_it_lies

# log2 of a run and of a part. float32 is sorted once, not twice, up to 1024 at a time.
_BITS = {torch.float32: 10, torch.float16: 11, torch.bfloat16: 11}
_PER_THREAD = 16
_REGISTERS = 64
_BUFFERS = 2.0  # of the rows' size in the student's dtype, that what lies between the launches may take


@where_it_lies
def launch_long(
    student: Tensor,
    teacher: Tensor,
    target: Tensor | None,
    keep: Tensor | None,
    temperature: float,
    weights: str,
    rank_weights: Tensor | None,
    label_weight: float | None,
    kept: int,
    want_gradient: bool,
    bits: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Loss `[N]`, gradient `[N, C]` (empty where not wanted) and weight left out `[N]`."""
    n, classes = student.shape
    loss = torch.empty(n, dtype=torch.float32, device=student.device)
    left_out = torch.empty_like(loss)
    gradient = torch.empty((n, classes) if want_gradient else 0, dtype=student.dtype, device=student.device)
    bits = _BITS[teacher.dtype] if bits is None else bits
    together = rows_together(n, classes, student.element_size(), teacher.element_size(), bits)
    for first in range(0, n, together):
        rows = slice(first, first + together)
        _launch(
            student[rows],
            teacher[rows],
            None if target is None else target[rows],
            None if keep is None else keep[rows],
            temperature,
            weights,
            rank_weights,
            label_weight,
            kept,
            bits,
            loss[rows],
            gradient[rows] if want_gradient else None,
            left_out[rows],
        )
    return loss, gradient, left_out


def scratch_bytes(classes: int, student_bytes: int, teacher_bytes: int, bits: int) -> int:
    """What a row needs between the launches."""
    runs = -(-classes >> bits)
    parts = -(-classes // (1 << bits))
    wide = 1 << (runs - 1).bit_length()
    return classes * (student_bytes + teacher_bytes + 2) + 4 * (5 * runs + (parts + 3) * wide + 2 * parts)


def rows_together(n: int, classes: int, student_bytes: int, teacher_bytes: int, bits: int) -> int:
    """Rows that share the launches, in equal batches, so that what lies between them stays within its bound.

    A multiple of 16: Triton compiles anew for pointers that are less aligned.
    """
    bound = _BUFFERS * n * classes * student_bytes
    most = max(1, int(bound // scratch_bytes(classes, student_bytes, teacher_bytes, bits)))
    batches = max(1, -(-n // most))
    return -(-n // (16 * batches)) * 16


def _launch(
    student: Tensor,
    teacher: Tensor,
    target: Tensor | None,
    keep: Tensor | None,
    temperature: float,
    weights: str,
    rank_weights: Tensor | None,
    label_weight: float | None,
    kept: int,
    bits: int,
    loss: Tensor,
    gradient: Tensor | None,
    left_out: Tensor,
) -> None:
    from plackett.kernels.device.cuts import cuts_kernel
    from plackett.kernels.device.long import long_kernel
    from plackett.kernels.device.runs import runs_kernel
    from plackett.kernels.device.unsort import unsort_kernel

    n, classes = student.shape
    device, size = student.device, 1 << bits
    runs = parts = -(-classes // size)
    wide = 1 << (runs - 1).bit_length()
    warps = max(1, size // (_WARP * _PER_THREAD))
    lanes = _WARP * warps
    registers = bits if interpreted() else bits - lanes.bit_length() + 1
    options = {} if interpreted() else {"maxnreg": _REGISTERS}
    align = alignment(student, teacher)
    # Triton lays loads out as the narrowest aligned access wants them, here the stores of 16-bit places.
    vector = min(math.gcd(8, classes), size // lanes)

    by_student = torch.empty((n, classes), dtype=student.dtype, device=device)
    by_teacher = torch.empty((n, classes), dtype=teacher.dtype, device=device)
    place = torch.empty((n, classes), dtype=torch.int16, device=device)
    found = torch.empty((n, 5, runs), dtype=torch.float32, device=device)
    cuts = torch.empty((n, parts + 1, wide), dtype=torch.int32, device=device)
    counting, counting_step = flags(keep)
    target_step = 0 if target is None else target.stride(0)

    start(
        runs_kernel,
        n * runs,
        student,
        teacher,
        target,
        counting,
        by_student,
        by_teacher,
        place,
        found,
        student.stride(0) // align,
        student.stride(1),
        teacher.stride(0) // align,
        teacher.stride(1),
        target_step,
        counting_step,
        classes // align,
        runs,
        1.0 / temperature,
        ALIGN=align,
        N=bits,
        LANES=lanes,
        VEC=vector,
        REGISTERS=registers,
        LABELLED=target is not None,
        KEEP=keep is not None,
        PTX=has_ptx(),
        num_warps=warps,
        **options,
    )
    start(
        cuts_kernel,
        n * (parts + 1),
        by_teacher,
        counting,
        cuts,
        counting_step,
        classes,
        parts,
        N=bits,
        PART=size,
        RUNS=wide,
        SPARE=SPARE_BITS[teacher.dtype],
        KEEP=keep is not None,
        num_warps=1,
    )
    start(
        long_kernel,
        n,
        target,
        teacher,
        counting,
        rank_weights,
        by_student,
        by_teacher,
        found,
        cuts,
        torch.empty((n, 2 * wide), dtype=torch.int32, device=device),
        torch.empty((n, parts), dtype=torch.float32, device=device),
        torch.empty((n, parts), dtype=torch.int32, device=device),
        loss,
        left_out,
        teacher.stride(0),
        teacher.stride(1),
        target_step,
        counting_step,
        classes,
        runs,
        kept,
        1.0 / temperature,
        0.0 if label_weight is None else float(label_weight),
        RUN_BITS=bits,
        RUNS=wide,
        RUN_COUNT_BITS=wide.bit_length() - 1,
        PARTS=parts,
        N=bits,
        LANES=lanes,
        REGISTERS=registers,
        MODE=3 if rank_weights is not None else MODES[weights],
        LABELLED=target is not None,
        FLOOR=label_weight is not None,
        KEEP=keep is not None,
        PARTIAL=kept < classes,
        GRADIENT=gradient is not None,
        PTX=has_ptx(),
        num_warps=warps,
        **options,
    )
    if gradient is not None:
        start(
            unsort_kernel,
            n * runs,
            by_student,
            place,
            counting,
            gradient,
            counting_step,
            classes // align,
            runs,
            ALIGN=align,
            N=bits,
            KEEP=keep is not None,
            PTX=has_ptx(),
            num_warps=warps,
        )
