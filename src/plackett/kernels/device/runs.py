"""A long row cut into runs that fit on chip, each sorted by the teacher: the first of four launches of `long`.

Logits of both networks are written in each run's order, with the place that each had in its run, and what the row as a
whole must know: its largest and smallest student logit, the teacher's largest and normaliser, how many it offers.
"""

import triton
import triton.language as tl

from plackett.kernels.device.arithmetic import exp2
from plackett.kernels.device.exchange import buffer, exchange
from plackett.kernels.device.keys import order, ranks

_LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def runs_kernel(
    student,
    teacher,
    target,
    keep,
    by_student,  # [rows, classes] each, by run and rank in it
    by_teacher,
    place,
    found,  # [rows, 5, runs] float32
    student_row,
    student_col,
    teacher_row,
    teacher_col,
    target_step,
    keep_step,
    units,  # classes / ALIGN
    runs,
    scale,
    ALIGN: tl.constexpr,
    N: tl.constexpr,
    LANES: tl.constexpr,
    VEC: tl.constexpr,
    REGISTERS: tl.constexpr,
    LABELLED: tl.constexpr,
    KEEP: tl.constexpr,
    PTX: tl.constexpr,
):
    SIZE: tl.constexpr = 1 << N
    nothing = -float("inf")
    row = (tl.program_id(0) // runs).to(tl.int64)
    run = tl.program_id(0) % runs
    counts = True
    if KEEP:
        counts = tl.load(keep + row * keep_step) != 0
    if counts:
        base = buffer(SIZE, PTX)
        classes = units * ALIGN
        cols = tl.arange(0, SIZE)
        first = run * SIZE
        inside = first + cols < classes
        s_run = student + row * (student_row * ALIGN) + first * student_col
        t_run = teacher + row * (teacher_row * ALIGN) + first * teacher_col
        t_class = tl.load(t_run + cols * teacher_col, mask=inside, other=nothing)
        s_class = tl.load(s_run + cols * student_col, mask=inside, other=nothing).to(tl.float32)

        t = t_class.to(tl.float32)
        t_top = tl.max(t, 0)
        q = tl.where(t == nothing, 0.0, exp2((t - t_top) * (scale * _LOG2E), PTX))
        at = found + row * (5 * runs) + run
        tl.store(at, tl.max(s_class, 0))
        tl.store(at + runs, tl.min(tl.where(inside, s_class, float("inf")), 0))
        tl.store(at + 2 * runs, t_top)
        tl.store(at + 3 * runs, tl.sum(q, 0))
        tl.store(at + 4 * runs, tl.sum((t != nothing).to(tl.float32), 0))

        label = -1
        if LABELLED:
            label = tl.load(target + row * target_step).to(tl.int32) - first
        index, t = order(t_class, cols, label, base, N, LANES, VEC, REGISTERS, LABELLED, PTX)
        if LABELLED:  # before everything in the row as well
            t = tl.where(index == label, float("inf"), t)
        if PTX:
            s = exchange(base, s_class, cols, index)
        else:
            s = tl.load(s_run + index * student_col, mask=first + index < classes, other=nothing).to(tl.float32)
        rank = tl.reshape(ranks(N), [SIZE])
        to = row * classes + first
        real = first + rank < classes
        tl.store(by_teacher + to + rank, tl.reshape(t, [SIZE]).to(by_teacher.dtype.element_ty), mask=real)
        tl.store(by_student + to + rank, tl.reshape(s, [SIZE]).to(by_student.dtype.element_ty), mask=real)
        tl.store(place + to + rank, tl.reshape(index, [SIZE]).to(tl.int16), mask=real)
