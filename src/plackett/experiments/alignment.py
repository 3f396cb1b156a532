"""How alike two networks' predictions are: probabilities, orders, and mistakes."""

from __future__ import annotations

from dataclasses import asdict

import torch
from torch import Tensor

from plackett.errors import InputError
from plackett.evaluation import accuracy, agreement, calibration
from plackett.experiments.records import CalibrationRecord
from plackett.experiments.transfer import Alignment, ClassRecord
from plackett.teachers import first_choice_weight

PAIRS = 20_000_000  # pairs of classes that are compared for the rank figures: 2,000 pictures of 100 classes


def align(teacher: Tensor, student: Tensor, targets: Tensor) -> Alignment:
    """`student` against `teacher`, logits `[N, C]` each; `-inf` of the teacher is a class that it does not offer.

    >>> same = torch.tensor([[2.0, 1.0, 0.0]])
    >>> found = align(same, same, torch.tensor([0]))
    >>> found.forward_kl, found.top1, found.kendall
    (0.0, 1.0, 1.0)
    """
    if teacher.shape != student.shape or teacher.dim() != 2 or len(targets) != len(teacher) or not len(targets):
        raise InputError(
            f"Predictions to compare must be [pictures, classes] alike, with a label each; "
            f"got {list(teacher.shape)}, {list(student.shape)} and {len(targets)} labels."
        )
    if teacher.shape[1] < 2:
        raise InputError("Predictions over a single class have nothing to compare.")
    t, s = teacher.double(), student.double()
    for whose, logits in (("first", t), ("second", s)):
        if bool(torch.isnan(logits).any()) or bool((logits == torch.inf).any()):
            raise InputError(f"The {whose} model's predictions are not finite; nothing can be said of them.")
    offered = t != -torch.inf
    s_offered = torch.where(offered, s, -torch.inf)
    log_q, log_p = t.log_softmax(-1), s_offered.log_softmax(-1)
    q, p = log_q.exp(), log_p.exp()
    log_m = torch.where(offered, (q + p) / 2, 1.0).log()
    rows = torch.linspace(0, len(t) - 1, min(len(t), max(1, PAIRS // t.shape[1] ** 2)), device=t.device).round().long()
    spearman, kendall, weighted = _orders(t[rows], s_offered[rows], q[rows], offered[rows])
    k = min(5, t.shape[1])
    common = (t.topk(k).indices.unsqueeze(-1) == s.topk(k).indices.unsqueeze(-2)).any(-1)
    right, teacher_right = s.argmax(-1) == targets, t.argmax(-1) == targets
    return Alignment(
        pictures=len(t),
        ranked=len(rows),
        forward_kl=_mean(_terms(q, log_q - log_p)),
        reverse_kl=_mean(_terms(p, log_p - log_q)),
        js=_mean(_terms(q, log_q - log_m) / 2 + _terms(p, log_p - log_m) / 2),
        top1=agreement(s, t),
        top5=common.double().mean().item(),
        spearman=spearman,
        kendall=kendall,
        weighted=weighted,
        first_choice_weight=first_choice_weight(s, targets, [1.0])[1.0],
        teacher_first_choice_weight=first_choice_weight(t, targets, [1.0])[1.0],
        accuracy=accuracy(s, targets),
        teacher_accuracy=accuracy(t, targets),
        both=_share(right & teacher_right),
        only_teacher=_share(~right & teacher_right),
        only_student=_share(right & ~teacher_right),
        neither=_share(~right & ~teacher_right),
        calibration=CalibrationRecord(**asdict(calibration(s, targets))),
        teacher_calibration=CalibrationRecord(**asdict(calibration(t, targets))),
        classes=_classes(targets, teacher_right, right, t.shape[1]),
    )


def _terms(weights: Tensor, logs: Tensor) -> Tensor:
    """sum_c w_c l_c, nothing where w_c is 0."""
    return torch.where(weights > 0, weights * logs, 0.0).sum(-1)


def _mean(rows: Tensor) -> float:
    return rows.mean().clamp_min(0.0).item()  # a divergence is not below 0; rounding may be


def _share(which: Tensor) -> float:
    return which.double().mean().item()


def _orders(t: Tensor, s: Tensor, q: Tensor, offered: Tensor) -> tuple[float, float, float]:
    """Means over rows of Spearman's rho, Kendall's tau-b and the weighted agreement, all from the signs of pairs.

    sum_j sign(x_i - x_j) = 2 rank_i - (C + 1), ties by their mean rank: rho is the correlation of these sums, and
    tau-b that of the signs themselves. A row without an order (all equal) has neither, and does not count.
    """
    sums = torch.zeros(5, dtype=torch.float64, device=t.device)  # rho, its rows, tau, its rows, weighted
    size = max(1, 4_000_000 // t.shape[1] ** 2)
    for part in torch.split(torch.arange(len(t), device=t.device), size):
        pairs = offered[part].unsqueeze(2) & offered[part].unsqueeze(1)
        a, b = _signs(t[part], pairs), _signs(s[part], pairs)
        for place, (x, y) in enumerate(((a.sum(-1), b.sum(-1)), (a.flatten(1), b.flatten(1)))):
            norms = (x.square().sum(-1) * y.square().sum(-1)).sqrt()
            ordered = norms > 0
            found = ((x * y).sum(-1) / torch.where(ordered, norms, 1.0))[ordered]
            sums[2 * place] += found.sum()
            sums[2 * place + 1] += len(found)
        weights = q[part].unsqueeze(2) * q[part].unsqueeze(1) * (a != 0)
        total = weights.sum((1, 2))
        same = (weights * ((a * b > 0) + 0.5 * (b == 0))).sum((1, 2))
        sums[4] += torch.where(total > 0, same / torch.where(total > 0, total, 1.0), 1.0).sum()
    rho, rho_rows, tau, tau_rows, weighted = sums.tolist()
    return rho / max(1.0, rho_rows), tau / max(1.0, tau_rows), weighted / len(t)


def _signs(x: Tensor, pairs: Tensor) -> Tensor:
    x = torch.where(x == -torch.inf, 0.0, x)
    return torch.where(pairs, (x.unsqueeze(2) - x.unsqueeze(1)).sign(), 0.0)


def _classes(targets: Tensor, teacher: Tensor, student: Tensor, classes: int) -> list[ClassRecord]:
    counts = torch.bincount(targets, minlength=classes)
    rows = [torch.bincount(targets, weights=right.double(), minlength=classes) for right in (teacher, student)]
    found = [counts.tolist(), *(row.tolist() for row in rows)]
    return [
        ClassRecord(count=n, teacher=a / n if n else None, student=b / n if n else None)
        for n, a, b in zip(*found, strict=True)
    ]
