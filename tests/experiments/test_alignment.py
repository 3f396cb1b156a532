"""Figures of likeness against SciPy, torchmetrics and hand-made cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from plackett.errors import InputError
from plackett.experiments import alignment
from plackett.experiments.alignment import align

N, C = 40, 12


def logits(seed: int, n: int = N, classes: int = C) -> Tensor:
    return 3 * torch.randn(n, classes, generator=torch.Generator().manual_seed(seed))


def labels(n: int = N, classes: int = C) -> Tensor:
    return torch.arange(n) % classes


def test_the_divergences_are_torchmetrics() -> None:
    functional = pytest.importorskip("torchmetrics.functional")
    t, s = logits(1).double(), logits(2).double()
    found = align(t, s, labels())
    p, q = s.softmax(-1), t.softmax(-1)
    assert found.forward_kl == pytest.approx(functional.kl_divergence(q, p).item(), rel=1e-9)
    assert found.reverse_kl == pytest.approx(functional.kl_divergence(p, q).item(), rel=1e-9)
    m = (p + q) / 2
    js = (functional.kl_divergence(q, m) + functional.kl_divergence(p, m)) / 2
    assert found.js == pytest.approx(js.item(), rel=1e-9)
    ece = functional.classification.multiclass_calibration_error(p, labels(), C, n_bins=10, norm="l1")
    assert found.ece == pytest.approx(ece.item(), abs=1e-6)


@pytest.mark.parametrize("ties", [False, True])
def test_the_orders_are_scipys(ties: bool) -> None:
    stats = pytest.importorskip("scipy.stats")
    t, s = logits(1), logits(2)
    if ties:
        t, s = t.round(), s.round()
    found = align(t, s, labels())
    rho = [stats.spearmanr(a, b).statistic for a, b in zip(t.numpy(), s.numpy(), strict=True)]
    tau = [stats.kendalltau(a, b).statistic for a, b in zip(t.numpy(), s.numpy(), strict=True)]
    assert found.spearman == pytest.approx(np.mean(rho), rel=1e-9)
    assert found.kendall == pytest.approx(np.mean(tau), rel=1e-9)


def test_the_weighted_order_by_hand() -> None:
    """Teacher (1/2, 1/3, 1/6): pairs weigh 1/6, 1/12, 1/18; the student swaps the last pair alone."""
    t = torch.tensor([[0.5, 1 / 3, 1 / 6]]).log()
    found = align(t, torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([0]))
    assert found.weighted == pytest.approx((1 / 6 + 1 / 12) / (1 / 6 + 1 / 12 + 1 / 18), rel=1e-6)
    assert found.first_choice_weight == pytest.approx(math.exp(2) / (math.exp(2) + math.e + 1), rel=1e-6)
    assert found.teacher_first_choice_weight == pytest.approx(0.5, rel=1e-6)


def test_who_is_right_and_where() -> None:
    def says(*classes: int) -> Tensor:
        return torch.nn.functional.one_hot(torch.tensor(classes), 3).float()

    targets = torch.tensor([0, 0, 1, 1])
    found = align(says(0, 0, 1, 2), says(0, 1, 2, 1), targets)
    assert (found.both, found.only_teacher, found.only_student, found.neither) == (0.25, 0.5, 0.25, 0.0)
    assert (found.accuracy, found.teacher_accuracy, found.top1) == (0.5, 0.75, 0.25)
    assert [(c.count, c.teacher, c.student) for c in found.classes] == [(2, 1.0, 0.5), (2, 0.5, 0.5), (0, None, None)]


def test_classes_that_the_teacher_does_not_offer_are_left_out() -> None:
    t, s = logits(1), logits(2)
    inside = align(t[:, :8], s[:, :8], labels(classes=8))
    t = t.clone()
    t[:, 8:] = -torch.inf
    found = align(t, s, labels(classes=8))
    for figure in ("forward_kl", "reverse_kl", "js", "spearman", "kendall", "weighted"):
        assert getattr(found, figure) == pytest.approx(getattr(inside, figure), rel=1e-9), figure


def test_many_classes_are_ranked_on_some_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "PAIRS", 10 * C * C)
    found = align(logits(1), logits(2), labels())
    assert (found.ranked, found.pictures) == (10, N)


def test_equal_predictions_are_alike() -> None:
    found = align(logits(1), logits(1), labels())
    assert (found.forward_kl, found.reverse_kl, found.js) == (0.0, 0.0, 0.0)
    assert (found.top1, found.top5, found.weighted) == (1.0, 1.0, 1.0)
    assert found.spearman == pytest.approx(1.0)


@pytest.mark.parametrize(("t", "s", "n", "sentence"), [
    (logits(1), logits(1, n=3), N, r"alike, with a label each; got \[40, 12\], \[3, 12\] and 40 labels\."),
    (logits(1), logits(1).log(), N, r"The second model's predictions are not finite; nothing can be said of them\."),
    (logits(1, classes=1), logits(1, classes=1), N, r"Predictions over a single class have nothing to compare\."),
])  # fmt: skip
def test_what_cannot_be_compared_is_said(t: Tensor, s: Tensor, n: int, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        align(t, s, torch.zeros(n, dtype=torch.long))
