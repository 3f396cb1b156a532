"""SP, PKT and RKD: the student's rows relate to each other as the teacher's do, whatever the width of their features.

These couple the rows of a batch: there is no value a row, and accumulated small batches do not equal a large one.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from plackett.losses.pairs import Features, Pair, pair_up, unit
from plackett.losses.registry import Card, loss
from plackett.losses.rows import Reduction, reduce_batch

# Two rows nearer to each other than this share of the mean distance have (almost) no direction from one to the other.
_COINCIDE = 1e-3


@loss(
    Card(
        title="Similarity-preserving distillation",
        equation="""
        L = sum over layers of |G_s - G_t|^2 / n^2
        G = F F^T of the n rows' flattened features, each row of G scaled to length 1
        """,
        paper="Tung, Mori: Similarity-Preserving Knowledge Distillation, ICCV 2019; the PLD paper's SP row",
        defaults="weight 3000 beside CE 1",
        deviations="A row of zeros stays 0 and gets no gradient; published code divides its gradient by 1e-12.",
        layers="the output of the last stage of blocks, before pooling",
    ),
    module="SPLoss",
    features=True,
)
def sp(
    student: Features,
    teacher: Features,
    *,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Distance between the similarities of a batch's rows in student and teacher.

    Args:
        student: features `[N, ...]`, one or a list; they are flattened.
        teacher: features `[N, ...]`, as many, constants; widths may differ.
        mask: `[N]` bool, True = counts.
        num_items: divides the sum instead of the number of rows that count.
        reduction: "mean", or "sum": the mean times the number of rows that count.

    >>> sp(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0], [1.0]]))
    tensor(0.2929)
    """
    pairs = pair_up("sp", student, teacher, mask)
    n = _at_least_one(pairs.rows)
    value = torch.stack([_sp(pair) for pair in pairs.layers]).sum() / n**2
    return reduce_batch("sp", value, pairs.rows, reduction, num_items)


def _sp(pair: Pair) -> Tensor:
    # A row that does not count is 0, so that its row and its column of G are.
    gram_s, gram_t = (unit(_inner(x.flatten(1))) for x in pair)
    return (gram_s - gram_t).square().sum()


@loss(
    Card(
        title="Probabilistic knowledge transfer",
        equation="""
        L = sum over layers of mean_ij q_ij log(q_ij / p_ij)
        p_ij, q_ij = (1 + cos(f_i, f_j)) / 2 of student and teacher, scaled to sum 1 over j
        """,
        paper="Passalis, Tefas: Learning Deep Representations with Probabilistic Knowledge Transfer, ECCV 2018; "
        "the PLD paper's PKT row",
        defaults="weight 30000 beside CE 1 (the mean over all n^2 pairs is published code's; the paper sums)",
        deviations="A row of zeros has cosine 0 to all and no gradient; published code gives it a NaN gradient.",
        layers="the pooled embedding before the classifier",
    ),
    module="PKTLoss",
    features=True,
)
def pkt(
    student: Features,
    teacher: Features,
    *,
    eps: float = 1e-7,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Divergence between the distributions over a row's neighbours, in the student and in the teacher.

    Args:
        student: features `[N, ...]`, one or a list; they are flattened.
        teacher: features `[N, ...]`, as many, constants; widths may differ.
        eps: added to norms and probabilities, as published.
        mask: `[N]` bool, True = counts.
        num_items: divides the sum instead of the number of rows that count.
        reduction: "mean", or "sum": the mean times the number of rows that count.

    >>> pkt(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0], [1.0]]))
    tensor(0.0294)
    """
    pairs = pair_up("pkt", student, teacher, mask)
    n = _at_least_one(pairs.rows)
    value = torch.stack([_pkt(pair, pairs.keep, eps) for pair in pairs.layers]).sum() / n**2
    return reduce_batch("pkt", value, pairs.rows, reduction, num_items)


def _pkt(pair: Pair, keep: Tensor | None, eps: float) -> Tensor:
    # A row that does not count is 0, so as near to every row as to any other, in p and in q alike: it adds 0.
    p, q = (_neighbours(x.flatten(1), keep, eps) for x in pair)
    return (q * ((q + eps) / (p + eps)).log()).sum()


def _neighbours(x: Tensor, keep: Tensor | None, eps: float) -> Tensor:
    similarity = (_inner(unit(x, eps)) + 1) / 2  # [N, N]
    if keep is None:
        return similarity / similarity.sum(-1, keepdim=True)
    similarity = torch.where(keep, similarity, 0.0)
    total = similarity.sum(-1, keepdim=True)
    return similarity / torch.where(total > 0, total, 1.0)


@loss(
    Card(
        title="Relational knowledge distillation",
        equation="""
        L = sum over layers of w_d mean_ij h(d_ij / mean d) + w_a mean_ijk h(cos of the angle at i between j and k)
        h = the Huber difference of student and teacher (its knee at 1); d_ij the distance of rows i and j
        """,
        paper="Park et al.: Relational Knowledge Distillation, CVPR 2019; the PLD paper's RKD row",
        defaults="w_d = 25, w_a = 50, weight 1 beside CE 1",
        deviations="""
        Where rows i and j coincide, d_ij is 0 and has no gradient, and an angle with that side has cosine 0.
        A side shorter than 1e-3 of the mean distance is not stretched to length 1 but divided by that bound, which
        also bounds its gradient. Where all rows coincide the loss has no gradient.
        Published code divides the gradient of a coinciding pair's direction by 1e-12: one such pair can end a run,
        which may be how the PLD paper's own RKD run fell to 11 % (WRN-40-2 -> 40-1).
        Distances come from differences, not from |a|^2 + |b|^2 - 2ab, which cancels.
        """,
        layers="the pooled embedding before the classifier",
    ),
    module="RKDLoss",
    features=True,
)
def rkd(
    student: Features,
    teacher: Features,
    *,
    distance_weight: float = 25.0,
    angle_weight: float = 50.0,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Distances between all pairs of rows, and angles in all triples; memory grows with N^2 D and N^3, as published.

    Args:
        student: features `[N, ...]`, one or a list; they are flattened.
        teacher: features `[N, ...]`, as many, constants; widths may differ.
        distance_weight: weight of the distances.
        angle_weight: weight of the angles; 0 leaves them out.
        mask: `[N]` bool, True = counts.
        num_items: divides the sum instead of the number of rows that count.
        reduction: "mean", or "sum": the mean times the number of rows that count.

    >>> right, flat = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.0], [1.0], [-1.0]])
    >>> rkd(right, flat)
    tensor(2.4456)
    """
    pairs = pair_up("rkd", student, teacher, mask)
    n = _at_least_one(pairs.rows)
    values = []
    for pair in pairs.layers:
        (d_s, side_s), (d_t, side_t) = (_relations(x.flatten(1), pairs.keep, n) for x in pair)
        value = distance_weight * F.smooth_l1_loss(d_s, d_t, reduction="sum") / n**2
        if angle_weight:
            with _full_precision(pair.student):
                cos_s, cos_t = (u @ u.transpose(1, 2) for u in (side_s, side_t))  # [N, N, N]
            value = value + angle_weight * F.smooth_l1_loss(cos_s, cos_t, reduction="sum") / n**3
        values.append(value)
    return reduce_batch("rkd", torch.stack(values).sum(), pairs.rows, reduction, num_items)


def _relations(x: Tensor, keep: Tensor | None, n: int | Tensor) -> tuple[Tensor, Tensor]:
    """Distances over their mean `[N, N]`, and directions from row i to row j `[N, N, D]`; 0 where either is masked."""
    side = x.unsqueeze(0) - x.unsqueeze(1)
    if keep is not None:
        side = torch.where((keep.unsqueeze(0) & keep.unsqueeze(1)).unsqueeze(-1), side, 0.0)
    square = side.square().sum(-1)
    apart = square > 0
    # sqrt has an infinite slope at 0: pairs that coincide go around it.
    distance = torch.where(apart, torch.where(apart, square, 1.0).sqrt(), 0.0)
    mean = distance.sum() / _at_least_one(n * (n - 1))
    mean = torch.where(mean > 0, mean, 1.0)
    length = distance.clamp_min(_COINCIDE * mean.detach())
    return distance / mean, side / length.unsqueeze(-1)


def _inner(x: Tensor) -> Tensor:
    """All inner products of the rows of `x`, `[N, N]`, in the precision of `x` whatever autocast would have."""
    with _full_precision(x):
        return x @ x.T


def _full_precision(x: Tensor) -> torch.autocast:
    # Asked for outside of a graph only: it cannot be traced, and what is compiled is on a device that has autocast.
    known = torch.compiler.is_compiling() or torch.amp.autocast_mode.is_autocast_available(x.device.type)
    return torch.autocast(x.device.type if known else "cpu", enabled=False)


def _at_least_one(n: int | Tensor) -> int | Tensor:
    return n.clamp_min(1) if isinstance(n, Tensor) else max(1, n)
