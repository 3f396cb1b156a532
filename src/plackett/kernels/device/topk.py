"""PLD of the first K choices over rows of any length, each charged against all that is left.

    L       = sum_{k <= K} a_k log(1 + X'_k / e_pi_k),   X'_k = later choices' e + R, R = e of what is never charged
    dL/ds_i = e_i sum_{k < rank i} a_k / X_k - a_i X'_i / X_i for the chosen,   e_i sum_{k <= K} a_k / X_k for the rest

Three passes of one program over its row: where the choices end; R, the teacher's normaliser and who is chosen; the
gradient of those never charged, over which the chosen then write theirs. The K sums are `wide`, so any span is safe.
"""

import triton
import triton.language as tl

from plackett.kernels.device.arithmetic import exp2, log1p
from plackett.kernels.device.general import by_rank
from plackett.kernels.device.scans import largest, whole
from plackett.kernels.device.select import exact_end, falling32, nth_smallest, rising32
from plackett.kernels.device.wide import (
    power_of_two,
    scaled,
    scaled_add,
    scaled_exp,
    scaled_sum_beyond,
    scaled_whole,
)

_LOG2E = tl.constexpr(1.4426950408889634)
_LN2 = tl.constexpr(0.6931471805599453)
_LAST = tl.constexpr(0x7FFFFFFF)


@triton.jit
def _stream_sum(top, total, x, PTX: tl.constexpr):
    """log-sum-exp of a stream, a slot at a time: one exponential an element."""
    d = x - top
    shrink = exp2(-tl.abs(d) * _LOG2E, PTX)
    return tl.maximum(top, x), tl.where(d > 0, total * shrink + 1.0, total + shrink)


@triton.jit
def _log_one_plus(x, k):
    """log(1 + x 2^k)."""
    return tl.where(k > 64, _LN2 * k.to(tl.float32) + tl.log2(x) * _LN2, log1p(x * power_of_two(k), False))


@triton.jit
def _left_out(kept, choices, rank_weights, by_mass, MODE: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr):
    if MODE == 0:
        return by_mass
    else:
        total = 0.0
        for chunk in range(CHUNKS):
            rank = chunk * BLOCK + tl.arange(0, BLOCK)
            a = by_rank(rank, choices, rank_weights, MODE)
            total += tl.sum(tl.where((rank >= kept) & (rank < choices), a, 0.0), 0)
        return total


@triton.jit
def topk_kernel(
    student,
    teacher,
    target,
    keep,
    rank_weights,
    found,  # [rows, CAP] int32: whoever may be chosen
    counter,  # [rows] int32
    loss,
    gradient,
    left_out,
    student_row,
    student_col,
    teacher_row,
    teacher_col,
    target_step,
    keep_step,
    units,
    kept,
    scale,
    label_weight,
    ALIGN: tl.constexpr,
    BLOCK: tl.constexpr,
    CHUNKS: tl.constexpr,
    SLOTS: tl.constexpr,  # log2 of CAP
    SPARE: tl.constexpr,  # low bits of a float32 that the teacher's dtype does not use
    MODE: tl.constexpr,
    LABELLED: tl.constexpr,
    FLOOR: tl.constexpr,
    KEEP: tl.constexpr,
    GRADIENT: tl.constexpr,
    PTX: tl.constexpr,
):
    CAP: tl.constexpr = 1 << SLOTS
    nothing = -float("inf")
    row = tl.program_id(0).to(tl.int64)
    classes = units * ALIGN
    cols = tl.arange(0, BLOCK)
    out = gradient + row * classes
    half = gradient.dtype.element_ty
    counts = True
    if KEEP:
        counts = tl.load(keep + row * keep_step) != 0
    if counts:
        s_row = student + row * (student_row * ALIGN)
        t_row = teacher + row * (teacher_row * ALIGN)
        label = -1
        others = kept
        t_label = nothing
        s_label = nothing
        if LABELLED:
            label = tl.load(target + row * target_step).to(tl.int32)
            t_label = tl.load(t_row + label * teacher_col).to(tl.float32)
            s_label = tl.load(s_row + label * student_col).to(tl.float32)
            others = kept - 1

        # Where the choices end.
        slots = tl.full([BLOCK], -float("inf"), tl.float32)
        lows = tl.full([BLOCK], float("inf"), tl.float32)
        for chunk in range(CHUNKS):
            c = chunk * BLOCK + cols
            t = tl.load(t_row + c * teacher_col, mask=c < classes, other=nothing).to(tl.float32)
            lows = tl.minimum(lows, tl.where(c < classes, t, float("inf")))
            slots = tl.maximum(slots, tl.where(c == label, nothing, t))
        t_top = tl.maximum(tl.max(slots, 0), t_label)
        gaps = tl.min(lows, 0) == nothing  # the teacher does not offer some class
        end = nth_smallest(falling32(slots), others, SPARE)
        last = classes

        # Who is chosen, and the sums over everyone else; again with the exact end, should too many tie there.
        n = CAP + 1
        low = tl.full([BLOCK], -1e30, tl.float32)
        none = tl.zeros([BLOCK], tl.float32)
        top, total, u_top, u_total, mass, offers = low, none, low, none, none, none.to(tl.int32)
        tries = 0
        while (n > CAP) & (tries < 2):
            if tries == 1:
                end, last = exact_end(t_row, teacher_col, label, classes, others, BLOCK, CHUNKS)
            tl.store(counter + row, 0)
            tl.debug_barrier()
            top, total, u_top, u_total, mass, offers = low, none, low, none, none, none.to(tl.int32)
            for chunk in range(CHUNKS):
                c = chunk * BLOCK + cols
                inside = c < classes
                t = tl.load(t_row + c * teacher_col, mask=inside, other=nothing).to(tl.float32)
                s = tl.load(s_row + c * student_col, mask=inside, other=nothing).to(tl.float32)
                f = falling32(t)
                offered = (t != nothing) & (c != label)
                front = offered & ((f < end) | ((f == end) & (c <= last)))
                place = tl.atomic_add(counter + row + c * 0, 1, mask=front, sem="relaxed")
                tl.store(found + row * CAP + place, c, mask=front & (place < CAP))
                rest = offered & (front == 0)
                top, total = _stream_sum(top, total, tl.where(rest, s, nothing), PTX)
                if MODE == 0:
                    mass += tl.where(rest, exp2((t - t_top) * (scale * _LOG2E), PTX), 0.0)
                else:
                    offers += offered.to(tl.int32)
                if LABELLED:  # noqa: SIM102 - known when compiling, where `gaps` is the row's
                    if gaps:
                        gap = inside & (t == nothing) & (c != label)
                        u_top, u_total = _stream_sum(u_top, u_total, tl.where(gap, s, nothing), PTX)
            tl.debug_barrier()
            n = tl.load(counter + row, cache_modifier=".cg")
            tries += 1

        # The candidates in the teacher's order.
        slot = tl.arange(0, CAP)
        index = tl.load(found + row * CAP + slot, mask=slot < n, other=0, cache_modifier=".cg")
        t = tl.load(t_row + index * teacher_col, mask=slot < n, other=nothing).to(tl.float32)
        key = tl.where(slot < n, (falling32(t).to(tl.int64) << 32) | index, 0x7FFFFFFFFFFFFFFF)
        key = tl.sort(key)
        slot = tl.reshape(slot, [2] * SLOTS)
        key = tl.reshape(key, [2] * SLOTS)
        index = (key & 0xFFFFFFFF).to(tl.int32)
        t = rising32((key >> 32).to(tl.int32))
        candidate = slot < n
        chosen = candidate & (slot < others)
        t = tl.where(candidate, t, nothing)
        s = tl.load(s_row + index * student_col, mask=candidate, other=nothing).to(tl.float32)

        rest_top = tl.max(top, 0)
        rest_sum = tl.sum(total * exp2((top - rest_top) * _LOG2E, PTX), 0)
        s_top = tl.maximum(tl.maximum(largest(s), s_label), tl.where(rest_sum > 0, rest_top, nothing))
        u_max = tl.max(u_top, 0)
        u_sum = tl.sum(u_total * exp2((u_top - u_max) * _LOG2E, PTX), 0)
        if LABELLED:
            s_top = tl.maximum(s_top, tl.where(u_sum > 0, u_max, nothing))

        # Weights: of the label, of the others chosen, and what is left uncharged.
        rank = slot + (kept - others)
        by_mass = 0.0
        choices = classes
        if MODE == 0:
            q = exp2((t - t_top) * (scale * _LOG2E), PTX)
            q_label = exp2((t_label - t_top) * (scale * _LOG2E), PTX)
            uncharged = tl.sum(mass, 0) + whole(tl.where(chosen, 0.0, q))
            norm = 1.0 / (uncharged + whole(tl.where(chosen, q, 0.0)) + q_label)
            a = tl.where(chosen, q * norm, 0.0)
            a_label = q_label * norm
            by_mass = uncharged * norm
        else:
            choices = tl.sum(offers, 0) + (kept - others)
            a = tl.where(chosen, by_rank(rank, choices, rank_weights, MODE), 0.0)
            a_label = whole(tl.where(slot == 0, by_rank(slot, choices, rank_weights, MODE), 0.0))
        past = _left_out(kept, choices, rank_weights, by_mass, MODE, BLOCK, CHUNKS)
        if LABELLED:
            floor = label_weight if FLOOR else 0.0
            a_label = tl.where(t_label == nothing, floor, tl.maximum(a_label, floor))

        e, k = scaled_exp(tl.where(chosen, s - s_top, nothing))
        r, r_k = scaled_exp(rest_top - s_top)
        r, r_k = scaled(r * rest_sum, r_k)
        spare, spare_k = scaled_exp(tl.where(chosen, nothing, s - s_top))
        spare, spare_k = scaled_whole(spare, spare_k)
        r, r_k = scaled_add(r, r_k, spare, spare_k)
        later, later_k = scaled_sum_beyond(e, k, SLOTS, SLOTS, True)
        later, later_k = scaled_add(later, later_k, r, r_k)
        all_e, all_k = scaled_add(e, k, later, later_k)
        charged = chosen & (a != 0)
        value = whole(tl.where(charged, a * _log_one_plus(later / e, later_k - k), 0.0))
        ratio, ratio_k = scaled(tl.where(charged, a / all_e, 0.0), -all_k)
        before, before_k = scaled_sum_beyond(ratio, ratio_k, SLOTS, SLOTS, False)
        w, w_k = scaled_whole(ratio, ratio_k)
        if LABELLED:
            y, y_k = scaled_exp(s_label - s_top)
            o, o_k = scaled_whole(e, k)
            o, o_k = scaled_add(o, o_k, r, r_k)
            u, u_k = scaled_exp(u_max - s_top)
            u, u_k = scaled(u * u_sum, u_k)
            o, o_k = scaled_add(o, o_k, u, u_k)
            x, x_k = scaled_add(y, y_k, o, o_k)
            value += tl.where(a_label != 0, a_label * _log_one_plus(o / y, o_k - y_k), 0.0)
            first, first_k = scaled(a_label / x, -x_k)
            before, before_k = scaled_add(before, before_k, first, first_k)
            w, w_k = scaled_add(w, w_k, first, first_k)
        tl.store(loss + row, value)
        tl.store(left_out + row, past)

        if GRADIENT:
            for chunk in range(CHUNKS):
                c = chunk * BLOCK + cols
                inside = c < classes
                s_all = tl.load(s_row + c * student_col, mask=inside, other=nothing).to(tl.float32)
                z = (s_all - s_top) * _LOG2E
                g_all = w * exp2(tl.minimum(z + w_k.to(tl.float32), 126.0), PTX)
                if gaps:
                    t_all = tl.load(t_row + c * teacher_col, mask=inside, other=nothing).to(tl.float32)
                    if LABELLED:
                        g_gap = first * exp2(tl.minimum(z + first_k.to(tl.float32), 126.0), PTX)
                        g_all = tl.where(t_all == nothing, g_gap, g_all)
                    else:
                        g_all = tl.where(t_all == nothing, 0.0, g_all)
                tl.store(out + c, g_all.to(half), mask=inside)
            tl.debug_barrier()
            g = e * before * power_of_two(k + before_k)
            g -= tl.where(charged, a * (later / all_e) * power_of_two(later_k - all_k), 0.0)
            tl.store(out + index, g.to(half), mask=chosen)
            if LABELLED:
                g_label = tl.where(a_label != 0, -a_label * (o / x) * power_of_two(o_k - x_k), 0.0)
                tl.store(out + label, g_label.to(half))
    else:
        tl.store(loss + row, 0.0)
        tl.store(left_out + row, 0.0)
        if GRADIENT:
            for chunk in range(CHUNKS):
                c = chunk * BLOCK + cols
                tl.store(out + c, tl.zeros([BLOCK], tl.float32).to(half), mask=c < classes)
