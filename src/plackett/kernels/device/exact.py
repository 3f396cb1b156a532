"""PLD over rows that fit on chip: order, loss and gradient of a row in one program.

    e_i = exp(s_i - max s),   X_k = sum of e over what is left at choice k,   X'_k = X_k without the k-th choice
    loss    = sum_k a_k log(1 + X'_k / e_pi_k)
    dL/ds_i = e_i sum_{k < rank i} a_k / X_k - a_{rank i} X'_{rank i} / X_{rank i}

Rows whose classes are all offered and whose student logits span less than 70 take these sums as they stand: the
smallest X is then 4e-31 and the largest a / X 3e30, far inside float32. Other rows take them as `general` does.
"""

import triton
import triton.language as tl

from plackett.kernels.device.arithmetic import exp2, log1p, reciprocal
from plackett.kernels.device.exchange import buffer, exchange
from plackett.kernels.device.general import by_rank, general_row
from plackett.kernels.device.keys import order, ranks
from plackett.kernels.device.scans import largest, sum_beyond, whole

_LOG2E = tl.constexpr(1.4426950408889634)
_LINEAR_RANGE = tl.constexpr(70.0)


@triton.jit
def plain_terms(s, a, top, after, before, N: tl.constexpr, REGISTERS: tl.constexpr, PTX: tl.constexpr):
    """Loss, gradient and a / X by rank; `after` is the e of what comes later still, `before` the a / X of what came."""
    z = (s - top) * _LOG2E
    e = exp2(z, PTX)
    later = sum_beyond(e, N, REGISTERS, True) + after
    # The bounds are for the padding only, where 0 * inf would be NaN.
    loss = whole(a * log1p(later * exp2(tl.minimum(-z, 126.0), PTX), PTX))
    ratio = a * reciprocal(tl.maximum(e + later, 1e-37), PTX)
    gradient = e * (sum_beyond(ratio, N, REGISTERS, False) + before) - ratio * later
    return loss, gradient, ratio


@triton.jit
def _plain_row(s, t, top, rank, classes, kept, rank_weights, scale, label_weight, N: tl.constexpr,
               REGISTERS: tl.constexpr, MODE: tl.constexpr, LABELLED: tl.constexpr, FLOOR: tl.constexpr,
               PARTIAL: tl.constexpr, PTX: tl.constexpr):  # fmt: skip
    """Loss, gradient by rank and the weight past `kept`. The padding has s = t = -inf, hence e = a = 0, at the end."""
    if MODE == 0:
        q = exp2((t - largest(t)) * (scale * _LOG2E), PTX)
        a = q * (1.0 / whole(q))
    else:
        a = tl.where(rank < classes, by_rank(rank, classes, rank_weights, MODE), 0.0)
    past = 0.0
    if PARTIAL:
        past = whole(tl.where(rank >= kept, a, 0.0))
        a = tl.where(rank < kept, a, 0.0)
    if FLOOR:
        a = tl.where(rank == 0, tl.maximum(a, label_weight), a)

    loss, gradient, _ = plain_terms(s, a, top, -0.0, -0.0, N, REGISTERS, PTX)
    return loss, gradient, past


@triton.jit
def exact_kernel(
    student,
    teacher,
    target,
    keep,
    rank_weights,
    loss,
    gradient,
    left_out,
    student_row,
    student_col,
    teacher_row,
    teacher_col,
    target_step,
    keep_step,
    units,  # classes / ALIGN
    kept,
    scale,  # 1 / temperature
    label_weight,
    ALIGN: tl.constexpr,  # classes and row strides are multiples of this
    N: tl.constexpr,
    LANES: tl.constexpr,
    VEC: tl.constexpr,
    REGISTERS: tl.constexpr,
    MODE: tl.constexpr,
    LABELLED: tl.constexpr,
    FLOOR: tl.constexpr,
    KEEP: tl.constexpr,
    PARTIAL: tl.constexpr,
    GRADIENT: tl.constexpr,
    PTX: tl.constexpr,
):
    BLOCK: tl.constexpr = 1 << N
    row = tl.program_id(0).to(tl.int64)
    classes = units * ALIGN
    cols = tl.arange(0, BLOCK)
    inside = cols < classes
    out = gradient + row * classes
    counts = True
    if KEEP:
        counts = tl.load(keep + row * keep_step) != 0
    if counts:
        base = buffer(BLOCK, PTX)
        s_row = student + row * (student_row * ALIGN)
        t_row = teacher + row * (teacher_row * ALIGN)
        t_class = tl.load(t_row + cols * teacher_col, mask=inside, other=-float("inf"))
        label = -1
        if LABELLED:
            label = tl.load(target + row * target_step).to(tl.int32)
            t_label = tl.load(t_row + label * teacher_col).to(tl.float32)
        lowest = tl.min(tl.where(inside, t_class.to(tl.float32), float("inf")), 0)
        index, t = order(t_class, cols, label, base, N, LANES, VEC, REGISTERS, LABELLED, PTX)
        rank = ranks(N)
        if LABELLED:
            t = tl.where(rank == 0, t_label, t)

        s_class = tl.load(s_row + cols * student_col, mask=inside, other=-float("inf")).to(tl.float32)
        top = tl.max(s_class, 0)
        bottom = tl.min(tl.where(inside, s_class, float("inf")), 0)
        if PTX:
            s = exchange(base, s_class, cols, index)
        else:
            s = tl.load(s_row + index * student_col, mask=index < classes, other=-float("inf")).to(tl.float32)
        if (top - bottom <= _LINEAR_RANGE) & (lowest != -float("inf")):
            value, g, past = _plain_row(s, t, top, rank, classes, kept, rank_weights, scale, label_weight,
                                        N, REGISTERS, MODE, LABELLED, FLOOR, PARTIAL, PTX)  # fmt: skip
        else:
            value, g, past = general_row(s, t, rank, classes, kept, rank_weights, scale, label_weight,
                                         N, REGISTERS, MODE, LABELLED, FLOOR)  # fmt: skip
        tl.store(loss + row, value)
        tl.store(left_out + row, past)
        if GRADIENT:
            if PTX:
                g_class = exchange(base, g, index, cols)
                tl.store(out + cols, g_class.to(gradient.dtype.element_ty), mask=inside)
            else:
                tl.store(out + index, g.to(gradient.dtype.element_ty), mask=index < classes)
    else:
        tl.store(loss + row, 0.0)
        tl.store(left_out + row, 0.0)
        if GRADIENT:
            tl.store(out + cols, tl.zeros([BLOCK], tl.float32).to(gradient.dtype.element_ty), mask=inside)
