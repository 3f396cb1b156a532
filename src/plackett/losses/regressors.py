"""FitNet and VID: feature losses with parameters of their own. See `plackett.losses.feature` on the optimiser."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from plackett.errors import InputError
from plackett.losses.feature import fitnet, squared_difference
from plackett.losses.pairs import Features, Pair, Pairs, pair_up, same_space
from plackett.losses.registry import Card, loss_module
from plackett.losses.rows import Reduction, is_number, no_rows, reduce_rows

Channels = int | Sequence[int]


@loss_module(
    "fitnet",
    Card(
        title="FitNet: hints for thin deep nets",
        equation="L = sum over layers of mean (r(f_s) - f_t)^2,  r = ReLU(batch norm(1x1 convolution)), learned",
        paper="Romero et al.: FitNets, ICLR 2015; the PLD paper's FitNet row",
        defaults="weight 100 beside CE 1, in one stage",
        deviations="""
        The FitNets paper trains up to the hint first; published comparisons, and this, train everything at once.
        Where map sizes differ the larger is pooled; published code learns a strided or transposed convolution there.
        The batch norm takes the rows that count of each batch, in training and evaluation alike.
        """,
        layers="the output of the middle stage: the second of CIFAR's ResNets, WRNs, ResNet-50 and MobileNetV2",
    ),
    function=fitnet,
)
class FitNetLoss(nn.Module):
    """FitNet: mean squared difference of the teacher's features and a learned map of the student's.

    Its parameters must be given to the optimiser. Call it with `(student, teacher, *, mask, num_items)`.

    Args:
        student_channels: channels of the student's feature, or a list, a layer each.
        teacher_channels: channels of the teacher's.
        batch_norm: batch norm and ReLU after the convolution, as published code has; False leaves a linear map.
        reduction: "mean" over the rows that count, or "sum".

    >>> loss = FitNetLoss(student_channels=4, teacher_channels=8)
    >>> sum(p.numel() for p in loss.parameters())
    56
    >>> loss(torch.zeros(2, 4, 3, 3), torch.ones(2, 8, 3, 3)).shape
    torch.Size([])
    """

    def __init__(
        self,
        student_channels: Channels,
        teacher_channels: Channels,
        *,
        batch_norm: bool = True,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        no_rows("fitnet", reduction)
        if not isinstance(batch_norm, bool):
            raise InputError(f"fitnet: batch_norm must be True or False, not {batch_norm!r}.")
        self.reduction = reduction
        widths = _widths("fitnet", student_channels, teacher_channels)
        self.convolutions = nn.ModuleList(nn.Conv1d(s, t, 1) for s, t in widths)
        self.norms = nn.ModuleList(_BatchNorm(t) for _, t in widths) if batch_norm else None

    def forward(
        self,
        student: Features,
        teacher: Features,
        *,
        mask: Tensor | None = None,
        num_items: float | Tensor | None = None,
    ) -> Tensor:
        pairs = _expected("fitnet", pair_up("fitnet", student, teacher, mask), self.convolutions)
        rows = []
        for i, (pair, convolution) in enumerate(zip(pairs.layers, self.convolutions, strict=True)):
            s, t = same_space("fitnet", i, pair)
            x = convolution(_positions(s).to(_dtype(convolution))).to(t.dtype)  # [N, C', positions]
            if self.norms is not None:
                x = self.norms[i](x, pairs.keep, pairs.rows).relu()
            rows.append(squared_difference("fitnet", i, Pair(x, _positions(t))))
        return reduce_rows(sum(rows[1:], rows[0]), pairs.keep, self.reduction, num_items)


@loss_module(
    "vid",
    Card(
        title="Variational information distillation",
        equation="""
        L = sum over layers of mean [ (f_t - mu(f_s))^2 / v + log v ] / 2
        mu = three 1x1 convolutions with ReLU between, v = eps + softplus(one scale a channel), both learned
        """,
        paper="""
        Ahn et al.: Variational Information Distillation for Knowledge Transfer, CVPR 2019; the PLD paper's VID row
        """,
        defaults="weight 1 beside CE 1; v starts at 5, eps = 1e-5",
        deviations="none from RepDistiller; mdistiller never trains the scales, which are in no parameter list there",
        layers="""
        the output of every stage of blocks: three in CIFAR's ResNets and WRNs, four in ResNet-50 and MobileNetV2
        """,
    ),
)
class VIDLoss(nn.Module):
    """VID: how surprised a Gaussian predicted from the student's features is at the teacher's.

    Its parameters must be given to the optimiser. Call it with `(student, teacher, *, mask, num_items)`. The larger of
    two maps is pooled. Negative values are possible: log v has no lower bound but log eps.

    Args:
        student_channels: channels of the student's feature, or a list, a layer each.
        teacher_channels: channels of the teacher's.
        initial_variance: v before training.
        eps: the least v.
        reduction: "mean" over the rows that count, or "sum".

    >>> loss = VIDLoss(student_channels=[4, 8], teacher_channels=[8, 16])
    >>> [list(scale.shape) for scale in loss.scales]
    [[8], [16]]
    >>> round(loss.variance(0)[0].item(), 4)
    5.0
    """

    def __init__(
        self,
        student_channels: Channels,
        teacher_channels: Channels,
        *,
        initial_variance: float = 5.0,
        eps: float = 1e-5,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        no_rows("vid", reduction)
        for name, value in (("initial_variance", initial_variance), ("eps", eps)):
            if not is_number(value):
                raise InputError(f"vid: {name} must be a finite number, not {value!r}.")
        if not initial_variance > eps > 0:
            raise InputError(f"vid: initial_variance {initial_variance} must be above eps {eps}, and both above 0.")
        self.eps, self.reduction = eps, reduction
        widths = _widths("vid", student_channels, teacher_channels)
        self.predictors = nn.ModuleList(_predictor(s, t) for s, t in widths)
        # softplus(scale) + eps = initial_variance, without exp of a large variance
        above = initial_variance - eps
        scale = above + math.log(-math.expm1(-above))
        self.scales = nn.ParameterList(torch.full((t,), scale) for _, t in widths)

    def variance(self, layer: int) -> Tensor:
        """v `[C']` of one layer."""
        return F.softplus(self.scales[layer]) + self.eps

    def forward(
        self,
        student: Features,
        teacher: Features,
        *,
        mask: Tensor | None = None,
        num_items: float | Tensor | None = None,
    ) -> Tensor:
        pairs = _expected("vid", pair_up("vid", student, teacher, mask), self.predictors)
        rows = []
        for i, (pair, predictor) in enumerate(zip(pairs.layers, self.predictors, strict=True)):
            s, t = same_space("vid", i, pair)
            mean = predictor(_positions(s).to(_dtype(predictor))).to(t.dtype)  # [N, C', positions]
            v = self.variance(i).to(t.dtype).unsqueeze(-1)
            surprise = ((_positions(t) - mean).square() / v + v.log()) / 2
            rows.append(surprise.flatten(1).mean(-1))
        return reduce_rows(sum(rows[1:], rows[0]), pairs.keep, self.reduction, num_items)


class _BatchNorm(nn.Module):
    """Batch norm over the rows that count, with no running statistics: a loss is only ever taken of a batch."""

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor, keep: Tensor | None, rows: int | Tensor) -> Tensor:
        count = (rows.clamp_min(1) if isinstance(rows, Tensor) else max(1, rows)) * x.shape[-1]
        centred = _only(x - _only(x, keep).sum((0, 2), keepdim=True) / count, keep)
        variance = centred.square().sum((0, 2), keepdim=True) / count
        w, b = (p.to(x.dtype).view(1, -1, 1) for p in (self.weight, self.bias))
        return centred * (variance + self.eps).rsqrt() * w + b


def _only(x: Tensor, keep: Tensor | None) -> Tensor:
    return x if keep is None else torch.where(keep.view(-1, 1, 1), x, 0.0)


def _predictor(student: int, teacher: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(student, teacher, 1, bias=False),
        nn.ReLU(),
        nn.Conv1d(teacher, teacher, 1, bias=False),
        nn.ReLU(),
        nn.Conv1d(teacher, teacher, 1, bias=False),
    )


def _positions(x: Tensor) -> Tensor:
    """`[N, C]` or `[N, C, ...]` as `[N, C, positions]`: a 1x1 convolution does not ask how they are arranged."""
    return x.flatten(2) if x.dim() > 2 else x.unsqueeze(-1)


def _dtype(module: nn.Module) -> torch.dtype:
    return next(module.parameters()).dtype


def _widths(who: str, student: Channels, teacher: Channels) -> list[tuple[int, int]]:
    s, t = (list(c) if isinstance(c, list | tuple) else [c] for c in (student, teacher))
    if len(s) != len(t) or not s:
        raise InputError(
            f"{who}: student_channels names {len(s)} layers, teacher_channels {len(t)}; give one of each a layer."
        )
    for width in (*s, *t):
        if isinstance(width, bool) or not isinstance(width, int) or width < 1:
            raise InputError(f"{who}: a number of channels must be a whole number above 0, not {width!r}.")
    return list(zip(s, t, strict=True))


def _expected(who: str, pairs: Pairs, maps: nn.ModuleList) -> Pairs:
    """The features must be those that the parameters were made for."""
    if len(pairs.layers) != len(maps):
        raise InputError(
            f"{who}: made for {len(maps)} layers, called with {len(pairs.layers)} features of each network."
        )
    for i, (pair, made) in enumerate(zip(pairs.layers, maps, strict=True)):
        first, last = (made[0], made[-1]) if isinstance(made, nn.Sequential) else (made, made)
        for name, x, width in (
            ("student", pair.student, first.in_channels),
            ("teacher", pair.teacher, last.out_channels),
        ):
            if x.shape[1] != width:
                raise InputError(
                    f"{who}: the {name}'s feature {i} has {x.shape[1]} channels, but {who} was made with "
                    f"{name}_channels={width} there."
                )
    return pairs
