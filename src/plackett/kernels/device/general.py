"""Loss and gradient by rank for any row: classes that the teacher does not offer, student logits of any span.

The sums of `exact`, carried as floats with an exponent of their own; see `wide`.
"""

import triton
import triton.language as tl

from plackett.kernels.device.arithmetic import log1p
from plackett.kernels.device.scans import largest, whole
from plackett.kernels.device.wide import (
    NOTHING,
    power_of_two,
    scaled,
    scaled_add,
    scaled_exp,
    scaled_sum_beyond,
    scaled_whole,
)

_LOG2E = tl.constexpr(1.4426950408889634)
_LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def _weights(t, rank, offered, choices, rank_weights, scale, MODE: tl.constexpr):
    """a by rank, before `label_weight`. MODE: 0 teacher, 1 uniform, 2 position, 3 given."""
    if MODE == 0:
        t = tl.where(offered, t, -float("inf"))
        q = tl.exp2((t - largest(t)) * (scale * _LOG2E))
        return q * (1.0 / whole(q))
    else:
        return tl.where(rank < choices, by_rank(rank, choices, rank_weights, MODE), 0.0)


@triton.jit
def by_rank(rank, choices, rank_weights, MODE: tl.constexpr):
    if MODE == 1:
        return tl.full(rank.shape, 1.0, tl.float32) / choices.to(tl.float32)
    elif MODE == 2:
        m = choices.to(tl.float32)
        tail = tl.exp2(-m)
        total = tl.where(m > 1, 1 - (1 + m) * tail, 1.0)
        return tl.where(m > 1, (tl.exp2(-(rank + 1).to(tl.float32)) - tail) / total, 1.0)
    else:
        return tl.load(rank_weights + rank, mask=rank < choices, other=0.0).to(tl.float32)


@triton.jit
def general_terms(z, a, taken, charged, label, after, after_k, rest, rest_k, before, before_k, N: tl.constexpr,
                  REGISTERS: tl.constexpr, LABELLED: tl.constexpr):  # fmt: skip
    """Loss, gradient and a / X by rank. `after` is the e of what comes later still, `rest` of what only the label's own
    choice is made among, `before` the a / X of what came earlier."""
    e, k = scaled_exp(tl.where(taken, z, -float("inf")))
    later, later_k = scaled_sum_beyond(e, k, N, REGISTERS, True)
    later, later_k = scaled_add(later, later_k, after, after_k)
    if LABELLED:
        more, more_k = scaled_add(later, later_k, rest, rest_k)
        later, later_k = tl.where(label, more, later), tl.where(label, more_k, later_k)
    x, gap = later / e, later_k - k
    far = _LN2 * gap.to(tl.float32) + tl.log2(x) * _LN2
    loss = whole(tl.where(charged, a * tl.where(gap > 64, far, log1p(x * power_of_two(gap), False)), 0.0))

    total, total_k = scaled_add(e, k, later, later_k)
    ratio, ratio_k = scaled(tl.where(charged, a / total, 0.0), -total_k)
    earlier, earlier_k = scaled_sum_beyond(ratio, ratio_k, N, REGISTERS, False)
    earlier, earlier_k = scaled_add(earlier, earlier_k, before, before_k)
    gradient = e * earlier * power_of_two(k + earlier_k)
    gradient -= tl.where(charged, a * (later / total) * power_of_two(later_k - total_k), 0.0)
    return loss, tl.where(taken, gradient, 0.0), ratio, ratio_k


@triton.jit
def general_row(s, t, rank, classes, kept, rank_weights, scale, label_weight, N: tl.constexpr, REGISTERS: tl.constexpr,
                MODE: tl.constexpr, LABELLED: tl.constexpr, FLOOR: tl.constexpr):  # fmt: skip
    """Loss, gradient by rank, and the weight of the choices past `kept`; a label's logit is t at rank 0."""
    nothing = -float("inf")
    real = rank < classes
    offered = real & (t != nothing)
    taken = offered
    here = offered
    if LABELLED:
        taken = taken | (rank == 0)
        here = real
    unoffered = real & (taken == 0)

    a = _weights(t, rank, offered, whole(taken.to(tl.int32)), rank_weights, scale, MODE)
    past = whole(tl.where(rank >= kept, a, 0.0))
    if LABELLED:
        floor = label_weight if FLOOR else 0.0
        a = tl.where(rank == 0, tl.where(offered, tl.maximum(a, floor), floor), a)
    charged = taken & (rank < kept) & (a != 0)

    z = tl.where(here, s - largest(tl.where(here, s, nothing)), nothing)
    rest, rest_k = 0.0, NOTHING
    if LABELLED:
        u, u_k = scaled_exp(tl.where(unoffered, z, nothing))
        rest, rest_k = scaled_whole(u, u_k)
    loss, gradient, ratio, ratio_k = general_terms(z, a, taken, charged, rank == 0, 0.0, NOTHING, rest, rest_k,
                                                   0.0, NOTHING, N, REGISTERS, LABELLED)  # fmt: skip
    if LABELLED:
        label_x, label_k = scaled_whole(tl.where(rank == 0, ratio, 0.0), tl.where(rank == 0, ratio_k, NOTHING))
        gradient = tl.where(unoffered, u * label_x * power_of_two(u_k + label_k), gradient)
    return loss, gradient, past
