"""PLD over rows too long for the chip: parts of the teacher's order that do fit, with the sums carried between them.

    after  = sum of e over all later parts,   before = sum of a / X over all earlier parts
    loss, dL/ds of a part: those of `exact`, with X_k + after for X_k, and its prefix sums begun at before

`runs` has sorted each run of the row, `cuts` has said where in each the first q of the whole row end, so a part is what
lies between two cuts: exactly so many classes however the logits lie, and one sort on chip puts them in order. Runs are
laid side by side, lower classes first, so ties stay in class order. One program takes a row: backwards over its parts
for `after`, forwards for everything else. The gradient takes the place of the student's logits; see `unsort`.
"""

import triton
import triton.language as tl

from plackett.kernels.device.arithmetic import exp2
from plackett.kernels.device.exact import plain_terms
from plackett.kernels.device.exchange import buffer, exchange, gather
from plackett.kernels.device.general import by_rank, general_terms
from plackett.kernels.device.keys import order, ranks
from plackett.kernels.device.scans import whole
from plackett.kernels.device.wide import (
    NOTHING,
    power_of_two,
    scaled_add,
    scaled_exp,
    scaled_whole,
)

_LOG2E = tl.constexpr(1.4426950408889634)
_LINEAR_RANGE = tl.constexpr(70.0)


@triton.jit
def _slots(cuts, part, offsets, slot, RUN_BITS: tl.constexpr, RUNS: tl.constexpr, RUN_COUNT_BITS: tl.constexpr):
    """Where the part's elements stand in the sorted row, and which slots hold one."""
    runs = tl.arange(0, RUNS)
    start = tl.load(cuts + part * RUNS + runs)
    size = tl.load(cuts + (part + 1) * RUNS + runs) - start
    offset = tl.cumsum(size, 0) - size
    tl.debug_barrier()  # the last part's are no longer read
    tl.store(offsets + runs, offset)
    tl.store(offsets + RUNS + runs, (runs << RUN_BITS) + start - offset)
    tl.debug_barrier()
    run = slot * 0
    for step in tl.static_range(RUN_COUNT_BITS):
        further = run + (1 << (RUN_COUNT_BITS - 1 - step))
        run = tl.where(tl.load(offsets + further) <= slot, further, run)
    return tl.load(offsets + RUNS + run) + slot, slot < tl.sum(size, 0)


@triton.jit
def long_kernel(
    target,
    teacher,
    keep,
    rank_weights,
    by_student,
    by_teacher,
    found,
    cuts,
    offsets,  # [rows, 2 RUNS] int32
    afters,  # [rows, parts] float32, and their exponents below
    exponents,
    loss,
    left_out,
    teacher_row,
    teacher_col,
    target_step,
    keep_step,
    classes,
    runs,
    kept,
    scale,
    label_weight,
    RUN_BITS: tl.constexpr,
    RUNS: tl.constexpr,
    RUN_COUNT_BITS: tl.constexpr,
    PARTS: tl.constexpr,
    N: tl.constexpr,
    LANES: tl.constexpr,
    REGISTERS: tl.constexpr,
    MODE: tl.constexpr,
    LABELLED: tl.constexpr,
    FLOOR: tl.constexpr,
    KEEP: tl.constexpr,
    PARTIAL: tl.constexpr,
    GRADIENT: tl.constexpr,
    PTX: tl.constexpr,
):
    PART: tl.constexpr = 1 << N
    nothing = -float("inf")
    row = tl.program_id(0).to(tl.int64)
    half = by_student.dtype.element_ty
    slot = tl.arange(0, PART)
    counts = True
    if KEEP:
        counts = tl.load(keep + row * keep_step) != 0
    if counts:
        base = buffer(PART, PTX)
        cut = cuts + row * (PARTS + 1) * RUNS
        offset = offsets + row * (2 * RUNS)
        after_row = afters + row * PARTS
        exponent_row = exponents + row * PARTS
        s_row = by_student + row * classes
        t_row = by_teacher + row * classes

        # The row as a whole.
        each = tl.arange(0, RUNS)
        real = each < runs
        stat = found + row * (5 * runs) + each
        top = tl.max(tl.load(stat, mask=real, other=nothing), 0)
        bottom = tl.min(tl.load(stat + runs, mask=real, other=float("inf")), 0)
        t_tops = tl.load(stat + 2 * runs, mask=real, other=nothing)
        t_top = tl.max(t_tops, 0)
        masses = tl.load(stat + 3 * runs, mask=real, other=0.0)
        norm = 1.0 / tl.sum(
            tl.where(t_tops == nothing, 0.0, masses * exp2((t_tops - t_top) * (scale * _LOG2E), PTX)), 0
        )
        choices = tl.sum(tl.load(stat + 4 * runs, mask=real, other=0.0), 0).to(tl.int32)
        plain = (top - bottom <= _LINEAR_RANGE) & (choices == classes)
        t_label = nothing
        if LABELLED:
            label = tl.load(target + row * target_step).to(tl.int32)
            t_label = tl.load(teacher + row * teacher_row + label * teacher_col).to(tl.float32)
            choices += (t_label == nothing).to(tl.int32)

        # Backwards: what is left after each part.
        after = tl.full((), 0.0, tl.float32)
        after_k = tl.full((), NOTHING, tl.int32)
        rest = tl.full((), 0.0, tl.float32)
        rest_k = tl.full((), NOTHING, tl.int32)
        for back in range(PARTS):
            part = PARTS - 1 - back
            tl.store(after_row + part, after)
            at, full = _slots(cut, part, offset, slot, RUN_BITS, RUNS, RUN_COUNT_BITS)
            s = tl.load(s_row + at, mask=full, other=nothing).to(tl.float32)
            if plain:
                after += tl.sum(exp2((s - top) * _LOG2E, PTX), 0)
            else:
                tl.store(exponent_row + part, after_k)
                t = tl.load(t_row + at, mask=full, other=nothing).to(tl.float32)
                e, k = scaled_exp(tl.where(t != nothing, s - top, nothing))
                e, k = scaled_whole(e, k)
                after, after_k = scaled_add(after, after_k, e, k)
                if LABELLED:
                    u, u_k = scaled_exp(tl.where(full & (t == nothing), s - top, nothing))
                    u, u_k = scaled_whole(u, u_k)
                    rest, rest_k = scaled_add(rest, rest_k, u, u_k)

        # Forwards: everything else.
        value = tl.full((), 0.0, tl.float32)
        past = tl.full((), 0.0, tl.float32)
        before = tl.full((), 0.0, tl.float32)
        before_k = tl.full((), NOTHING, tl.int32)
        first = tl.full((), 0.0, tl.float32)
        first_k = tl.full((), NOTHING, tl.int32)
        for part in range(PARTS):
            at, full = _slots(cut, part, offset, slot, RUN_BITS, RUNS, RUN_COUNT_BITS)
            t_slot = tl.load(t_row + at, mask=full, other=nothing)
            s_slot = tl.load(s_row + at, mask=full, other=nothing).to(tl.float32)
            index, t = order(t_slot, slot, -1, base, N, LANES, 1, REGISTERS, False, PTX)
            s = gather(base, s_slot, slot, index, PTX)
            rank = part * PART + ranks(N)
            if LABELLED:
                t = tl.where(rank == 0, t_label, t)
            offered = t != nothing
            if MODE == 0:
                a = tl.where(offered, exp2((t - t_top) * (scale * _LOG2E), PTX) * norm, 0.0)
            else:
                a = tl.where(rank < choices, by_rank(rank, choices, rank_weights, MODE), 0.0)
            if PARTIAL:
                past += whole(tl.where(rank >= kept, a, 0.0))
                a = tl.where(rank < kept, a, 0.0)
            if LABELLED:
                floor = label_weight if FLOOR else 0.0
                a = tl.where(rank == 0, tl.where(offered, tl.maximum(a, floor), floor), a)
            after = tl.load(after_row + part)
            if plain:
                more, g, ratio = plain_terms(s, a, top, after, before, N, REGISTERS, PTX)
                before += whole(ratio)
            else:
                taken = offered
                if LABELLED:
                    taken = taken | (rank == 0)
                after_k = tl.load(exponent_row + part)
                charged = taken & (a != 0)
                more, g, ratio, ratio_k = general_terms(s - top, a, taken, charged, rank == 0, after, after_k, rest,
                                                        rest_k, before, before_k, N, REGISTERS, LABELLED)  # fmt: skip
                if LABELLED:
                    if part == 0:
                        first, first_k = scaled_whole(tl.where(rank == 0, ratio, 0.0),
                                                      tl.where(rank == 0, ratio_k, NOTHING))  # fmt: skip
                    u, u_k = scaled_exp(tl.where(taken, nothing, s - top))
                    g = tl.where(taken, g, u * first * power_of_two(u_k + first_k))
                spent, spent_k = scaled_whole(ratio, ratio_k)
                before, before_k = scaled_add(before, before_k, spent, spent_k)
            value += more
            if GRADIENT:
                if PTX:
                    g_slot = exchange(base, g, index, slot)
                    tl.store(s_row + at, g_slot.to(half), mask=full)
                else:
                    to = gather(base, tl.where(full, at, -1), slot, index, PTX)
                    tl.store(s_row + to, g.to(half), mask=to >= 0)
        tl.store(loss + row, value)
        tl.store(left_out + row, past)
    else:
        tl.store(loss + row, 0.0)
        tl.store(left_out + row, 0.0)
