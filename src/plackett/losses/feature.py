"""Losses on features: `f(student, teacher)` of one feature map or embedding, or a list of them, summed over the list.

Two of them have parameters of their own, FitNet's regressors and VID's predictors and variances: they are modules
(`FitNetLoss`, `VIDLoss`), and **their parameters must be given to the optimiser** beside the student's:

    loss = plackett.FitNetLoss(student_channels=64, teacher_channels=256)
    optimizer = torch.optim.SGD([*student.parameters(), *loss.parameters()], lr=0.05)

An `Objective` that holds one of them passes them on: `objective.parameters()`. An optimiser that does not get them
trains the student towards random projections, and nothing says so.

Features are `[N, C, ...]`: rows first, channels second. Every loss here takes `mask`, `[N]` bool, True = counts.
"""

from __future__ import annotations

from torch import Tensor

from plackett.errors import InputError
from plackett.losses.pairs import Features, Pair, pair_up, same_space, unit
from plackett.losses.registry import Card, loss
from plackett.losses.rows import Reduction, no_rows, reduce_rows
from plackett.losses.similarity import pkt as pkt
from plackett.losses.similarity import rkd as rkd
from plackett.losses.similarity import sp as sp


@loss(
    Card(
        title="Attention transfer",
        equation="""
        L = sum over layers of mean_x (a_s(x) - a_t(x))^2,  a = the map of mean_c |f_c(x)|^p, scaled to length 1
        """,
        paper="Zagoruyko, Komodakis: Paying More Attention to Attention, ICLR 2017; the PLD paper's AT row",
        defaults="weight 1000 beside CE 1, p = 2",
        deviations="A map of zeros stays 0 and gets no gradient; published code divides its gradient by 1e-12.",
        layers="""
        the output of every stage of blocks: three in CIFAR's ResNets and WRNs, four in ResNet-50 and MobileNetV2
        """,
    ),
    module="ATLoss",
    features=True,
)
def at(
    student: Features,
    teacher: Features,
    *,
    p: float = 2.0,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Distance between maps of where each network looks; channels may differ, and the larger map is pooled.

    Args:
        student: feature maps `[N, C, ...]`, one or a list.
        teacher: feature maps `[N, C', ...]`, as many, constants.
        p: the power of the activations that are averaged over channels.
        mask: `[N]` bool, True = counts.
        num_items: divides instead of the number of rows that count, for gradient accumulation.
        reduction: "mean" over the rows that count, or "sum".

    >>> import torch
    >>> at(torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([[[[0.0, 2.0]]]]))
    tensor(1.)
    """
    no_rows("at", reduction)
    pairs = pair_up("at", student, teacher, mask)
    rows = []
    for i, pair in enumerate(pairs.layers):
        if pair.student.dim() < 3 or pair.teacher.dim() < 3:
            raise InputError(
                f"at: feature {i} has no spatial dimensions ({list(pair.student.shape)} and "
                f"{list(pair.teacher.shape)}); attention needs maps [N, C, ...]."
            )
        s, t = same_space("at", i, pair)
        rows.append((_attention(s, p) - _attention(t, p)).square().mean(-1))
    return reduce_rows(sum(rows[1:], rows[0]), pairs.keep, reduction, num_items)


def _attention(x: Tensor, p: float) -> Tensor:
    power = x.square() if p == 2 else x.abs().pow(p)
    return unit(power.mean(1).flatten(1))


def fitnet(
    student: Features,
    teacher: Features,
    *,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """FitNet without its regressor: mean squared difference of features with equal channels; the larger map is pooled.

    `plackett.FitNetLoss` is the published loss, with a regressor where channels differ.

    Args:
        student: features `[N, C]` or `[N, C, ...]`, one or a list.
        teacher: features with the same channels, as many, constants.
        mask: `[N]` bool, True = counts.
        num_items: divides instead of the number of rows that count, for gradient accumulation.
        reduction: "mean" over the rows that count, or "sum".

    >>> import torch
    >>> fitnet(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 2.0]]))
    tensor(2.)
    """
    no_rows("fitnet", reduction)
    pairs = pair_up("fitnet", student, teacher, mask)
    rows = [squared_difference("fitnet", i, pair) for i, pair in enumerate(pairs.layers)]
    return reduce_rows(sum(rows[1:], rows[0]), pairs.keep, reduction, num_items)


def squared_difference(who: str, layer: int, pair: Pair) -> Tensor:
    """Mean squared difference over all but the first dimension, `[N]`."""
    s, t = same_space(who, layer, pair)
    if s.shape[1] != t.shape[1]:
        raise InputError(
            f"{who}: feature {layer} has {s.shape[1]} channels in the student and {t.shape[1]} in the teacher; "
            f"use FitNetLoss(student_channels={s.shape[1]}, teacher_channels={t.shape[1]}), which learns to map them."
        )
    return (s - t).square().flatten(1).mean(-1)
