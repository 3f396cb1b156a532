"""The references against arithmetic in plain Python: what everything else is compared with must be right itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

import plackett
from plackett import functional, reference
from tests.cases import CASES, gapped_case, random_case

INF = math.inf
Floats = list[float]


# --- PLD by brute force: lists of floats, one choice at a time -------------------------------------------------------


def order_of(t: Floats, y: int | None) -> list[int]:
    """The label, then the classes that the teacher offers, by falling logit and then by index."""
    offered = [c for c in range(len(t)) if t[c] > -INF and c != y]
    return ([] if y is None else [y]) + sorted(offered, key=lambda c: (-t[c], c))


def weights_of(t: Floats, order: list[int], y: int | None, tau: float, weights: Any, w: float | None) -> Floats:
    m = len(order)
    if weights == "teacher":
        total = sum(math.exp(x / tau) for x in t)
        a = [math.exp(t[c] / tau) / total for c in order]
    elif weights == "uniform":
        a = [1 / m] * m
    elif weights == "position":
        raw = [2.0 ** (m - k) - 1 for k in range(1, m + 1)]
        a = [x / sum(raw) for x in raw] if m > 1 else [1.0]
    else:
        a = list(weights[:m])
    if y is not None:
        a[0] = (w or 0.0) if t[y] == -INF else max(a[0], w or 0.0)
    return a


def brute(
    s: Floats,
    t: Floats,
    y: int | None,
    tau: float = 1.0,
    weights: Any = "teacher",
    label_weight: float | None = None,
    top_k: int | None = None,
) -> tuple[float, float]:
    """One row's loss, and the weight that is not charged."""
    order = order_of(t, y)
    a = weights_of(t, order, y, tau, weights, label_weight)
    charged = len(order) if top_k is None else min(top_k, len(order))
    loss = 0.0
    for k in range(charged):
        left = order[k:]
        if k == 0 and y is not None:
            left = list(range(len(s)))  # the label is chosen among all of the student's classes
        loss += a[k] * (math.log(sum(math.exp(s[c]) for c in left)) - s[order[k]])
    return loss, sum(a[charged:])


def brute_soft(s: Floats, t: Floats, p: Floats, max_labels: int = 8, **options: Any) -> tuple[float, float]:
    floor = min(p)
    label_weight = options.pop("label_weight", None)
    loss, left = (len(p) * floor * x for x in brute(s, t, None, **options))
    for y in sorted(range(len(p)), key=lambda c: -p[c])[:max_labels]:
        part = brute(s, t, y, label_weight=label_weight, **options)
        loss, left = loss + (p[y] - floor) * part[0], left + (p[y] - floor) * part[1]
    return loss, left


def both(s: Sequence[Floats], t: Sequence[Floats], target: Any, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    result = reference.pld(
        torch.tensor(s, dtype=torch.float64),
        torch.tensor(t, dtype=torch.float64),
        None if target is None else torch.from_numpy(np.array(target)),
        reduction="none",
        return_left_out=True,
        **options,
    )
    assert isinstance(result, tuple)
    return result


def compare(found: tuple[torch.Tensor, torch.Tensor], expected: list[tuple[float, float]]) -> None:
    for tensor, numbers in zip(found, zip(*expected, strict=True), strict=True):
        torch.testing.assert_close(tensor, torch.tensor(numbers, dtype=torch.float64), rtol=1e-12, atol=1e-13)


# Few values, so that teachers tie; -inf, so that some classes are not offered.
LOGIT = st.sampled_from([-2.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0])
TEACHER = st.one_of(LOGIT, LOGIT, LOGIT, st.just(-INF))


@st.composite
def rows(draw: st.DrawFn) -> tuple[Floats, Floats, int]:
    c = draw(st.integers(1, 6))
    s = draw(st.lists(st.floats(-5, 5), min_size=c, max_size=c))
    t = draw(st.lists(TEACHER, min_size=c, max_size=c).filter(lambda x: max(x) > -INF))
    return s, t, draw(st.integers(0, c - 1))


OPTIONS = st.fixed_dictionaries(
    {
        "tau": st.sampled_from([0.5, 1.0, 4.0]),
        "weights": st.sampled_from(["teacher", "uniform", "position", "given"]),
        "top_k": st.sampled_from([None, 1, 2, 10]),
    }
)


def options_for(options: dict[str, Any], classes: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """For the brute force, and for the reference."""
    plain = dict(options)
    if plain["weights"] == "given":
        plain["weights"] = [1.0 / (k + 1) for k in range(classes)]
    theirs = {"temperature" if k == "tau" else k: v for k, v in plain.items()}
    if isinstance(theirs["weights"], list):
        theirs["weights"] = torch.tensor(theirs["weights"], dtype=torch.float64)
    return plain, theirs


@given(rows(), OPTIONS, st.sampled_from([None, 0.0, 0.7]))
def test_pld_with_a_label(row: tuple[Floats, Floats, int], options: dict[str, Any], label_weight: float | None) -> None:
    s, t, y = row
    plain, theirs = options_for({**options, "label_weight": label_weight}, len(s))
    compare(both([s], [t], [y], **theirs), [brute(s, t, y, **plain)])


@given(rows(), OPTIONS)
def test_pld_without_a_label(row: tuple[Floats, Floats, int], options: dict[str, Any]) -> None:
    s, t, _ = row
    plain, theirs = options_for(options, len(s))
    compare(both([s], [t], None, **theirs), [brute(s, t, None, **plain)])


@given(rows(), OPTIONS, st.integers(0, 10_000), st.sampled_from([None, 0.7]))
def test_pld_of_a_soft_target(
    row: tuple[Floats, Floats, int], options: dict[str, Any], seed: int, label_weight: float | None
) -> None:
    s, t, _ = row
    plain, theirs = options_for({**options, "label_weight": label_weight}, len(s))
    p = torch.rand(len(s), dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    p = (p / p.sum()).tolist()
    compare(both([s], [t], [p], **theirs), [brute_soft(s, t, p, **plain)])
    compare(both([s], [t], [p], max_labels=2, **theirs), [brute_soft(s, t, p, max_labels=2, **plain)])


@pytest.mark.parametrize("classes", range(1, 7))
def test_probabilities_of_all_orders_sum_to_one(classes: int) -> None:
    """exp(-C times the uniform loss) is an order's probability; a teacher whose order it is, for every order."""
    s = torch.randn(1, classes, dtype=torch.float64) * 2
    orders = list(itertools.permutations(range(classes)))
    t = torch.empty(len(orders), classes, dtype=torch.float64)
    for teacher, order in zip(t, orders, strict=True):
        teacher[list(order)] = torch.arange(classes, 0, -1, dtype=torch.float64)
    loss = reference.pld(s.expand(len(orders), -1), t, weights="uniform", reduction="none")
    assert isinstance(loss, torch.Tensor)
    assert (-classes * loss).exp().sum().item() == pytest.approx(1.0, abs=1e-12)


# --- PLD: the rest of its promises -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [1.0, 4.0])
def test_the_listing_is_pld_on_tie_free_rows(tau: float) -> None:
    s, t, y = random_case(20, 30)
    a, b = s.clone().requires_grad_(), s.clone().requires_grad_()
    first, second = reference.pld(a, t, y, temperature=tau), reference.published_pld(b, t, y, tau)
    assert isinstance(first, torch.Tensor)
    torch.testing.assert_close(first, second, rtol=1e-12, atol=0)
    torch.testing.assert_close(*torch.autograd.grad(first, a), *torch.autograd.grad(second, b), rtol=1e-9, atol=1e-13)


def test_the_listing_needs_a_label_that_exists() -> None:
    s, t, _ = random_case(2, 3)
    with pytest.raises(ValueError, match="exactly one label"):
        reference.published_pld(s, t, torch.tensor([0, 3]))


@pytest.mark.parametrize("options", [{}, {"weights": "position"}, {"top_k": 2}, {"label_weight": 0.6}])
def test_pld_has_two_derivatives(options: dict[str, Any]) -> None:
    s, t, y = gapped_case(4, 5)

    def loss(x: torch.Tensor) -> torch.Tensor:
        value = reference.pld(x, t, y, **options)
        assert isinstance(value, torch.Tensor)
        return value

    assert gradcheck(loss, s.requires_grad_())
    assert gradgradcheck(loss, s)


def test_pld_is_convex_and_its_second_derivative_says_so() -> None:
    s, t, y = random_case(1, 6)
    hessian = torch.autograd.functional.hessian(lambda x: reference.pld(x, t, y), s).view(6, 6)  # type: ignore[arg-type]
    assert torch.linalg.eigvalsh(hessian).min() > -1e-12


def test_masks_ignored_labels_and_reductions() -> None:
    s, t, y = random_case(6, 5)
    y[1] = -100
    mask = torch.arange(6) != 4
    counts = mask & (y != -100)
    s[~counts], t[~counts] = torch.nan, torch.nan
    x = s.clone().requires_grad_()
    value = reference.pld(x, t, y, mask=mask)
    assert isinstance(value, torch.Tensor)
    value.backward()
    kept = reference.pld(s[counts], t[counts], y[counts], reduction="sum")
    assert isinstance(kept, torch.Tensor)
    torch.testing.assert_close(value, kept / 4)
    torch.testing.assert_close(reference.pld(s, t, y, mask=mask, num_items=10), kept / 10)
    assert torch.equal(x.grad[~counts], torch.zeros(2, 5, dtype=x.dtype))
    nothing = reference.pld(x, t, y, mask=torch.zeros(6, dtype=torch.bool))
    assert isinstance(nothing, torch.Tensor)
    assert nothing.item() == 0.0
    assert nothing.requires_grad


def test_leading_dimensions_and_half_precision() -> None:
    s, t, y = random_case(6, 5, torch.bfloat16)
    grid = reference.pld(s.view(2, 3, 5), t.view(2, 3, 5), y.view(2, 3), reduction="none")
    flat = reference.pld(s.float(), t.float(), y, reduction="none")
    assert isinstance(grid, torch.Tensor)
    assert isinstance(flat, torch.Tensor)
    assert grid.dtype == torch.float32
    assert torch.equal(grid.view(-1), flat)


@pytest.mark.parametrize("scale", [1e4, 200.0])
def test_huge_logits(scale: float) -> None:
    s, t, y = random_case(5, 9, scale=scale)
    x = s.requires_grad_()
    value = reference.pld(x, t, y, temperature=100.0)
    assert isinstance(value, torch.Tensor)
    (slope,) = torch.autograd.grad(value, x, create_graph=True)
    assert torch.isfinite(value)
    assert torch.isfinite(slope).all()
    assert torch.isfinite(torch.autograd.grad(slope.square().sum(), x)[0]).all()


@pytest.mark.parametrize("name", CASES)
def test_the_fast_pld_agrees(name: str) -> None:
    s, t, y = CASES[name]()
    a, b = s.clone().requires_grad_(), s.clone().requires_grad_()
    fast, slow = functional.pld(a, t, y, temperature=2.0), reference.pld(b, t, y, temperature=2.0)
    assert isinstance(slow, torch.Tensor)
    torch.testing.assert_close(fast, slow, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(*torch.autograd.grad(fast, a), *torch.autograd.grad(slow, b), rtol=1e-9, atol=1e-12)


# --- the others, on two rows of three classes ------------------------------------------------------------------------

P = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]
Q = [[0.6, 0.3, 0.1], [0.3, 0.2, 0.5]]


def logs(p: Sequence[Floats]) -> torch.Tensor:
    return torch.tensor(p, dtype=torch.float64).log()


def kl(a: Floats, b: Floats) -> float:
    return sum(x * math.log(x / y) for x, y in zip(a, b, strict=True))


def test_cross_entropy_by_hand() -> None:
    target = torch.tensor([0, 1])
    assert reference.cross_entropy(logs(P), target).item() == pytest.approx(-(math.log(0.5) + math.log(0.2)) / 2)
    smoothed = [-sum(math.log(x) for x in row) / 3 for row in P]
    expected = sum(0.9 * -math.log(row[y]) + 0.1 * u for row, y, u in zip(P, (0, 1), smoothed, strict=True)) / 2
    assert reference.cross_entropy(logs(P), target, label_smoothing=0.1).item() == pytest.approx(expected)
    soft = torch.tensor(Q, dtype=torch.float64)
    entropy = sum(-x * math.log(x) for row in Q for x in row)
    both_rows = entropy + kl(Q[0], P[0]) + kl(Q[1], P[1])
    assert reference.cross_entropy(logs(P), soft).item() == pytest.approx(both_rows / 2)


def test_kd_by_hand() -> None:
    s, t = 2 * logs(P), 2 * logs(Q)  # at tau = 2 these are P and Q again
    m = [[(x + y) / 2 for x, y in zip(p, q, strict=True)] for p, q in zip(P, Q, strict=True)]
    expected = {
        "forward": sum(kl(q, p) for p, q in zip(P, Q, strict=True)) / 2,
        "reverse": sum(kl(p, q) for p, q in zip(P, Q, strict=True)) / 2,
        "js": sum(kl(q, x) + kl(p, x) for p, q, x in zip(P, Q, m, strict=True)) / 4,
    }
    for divergence, value in expected.items():
        found = reference.kd(s, t, temperature=2.0, divergence=divergence, scale=None)
        assert found.item() == pytest.approx(value, abs=1e-15)
        assert reference.kd(s, t, temperature=2.0, divergence=divergence).item() == pytest.approx(4 * value, abs=1e-14)


def test_standardize_by_hand() -> None:
    z = reference.standardize(torch.tensor([[1.0, 3.0, 8.0]], dtype=torch.float64))
    std = math.sqrt((9 + 1 + 16) / 2)
    torch.testing.assert_close(z, torch.tensor([[-3 / std, -1 / std, 4 / std]], dtype=torch.float64))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_agrees(smoothing: float) -> None:
    s, t, y = random_case(8, 6)
    for target in (y, torch.softmax(t, -1)):
        a = functional.cross_entropy(s, target, label_smoothing=smoothing)
        torch.testing.assert_close(a, reference.cross_entropy(s, target, label_smoothing=smoothing))


@pytest.mark.parametrize("divergence", ["forward", "reverse", "js"])
@pytest.mark.parametrize("scale", ["tau2", None])
def test_kd_agrees(divergence: str, scale: str | None) -> None:
    s, t, _ = random_case(8, 6)
    a, b = s.clone().requires_grad_(), s.clone().requires_grad_()
    options: dict[str, Any] = {"temperature": 3.0, "divergence": divergence, "scale": scale}
    fast, slow = functional.kd(a, t, **options), reference.kd(b, t, **options)
    torch.testing.assert_close(fast, slow, rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(*torch.autograd.grad(fast, a), *torch.autograd.grad(slow, b), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("divergence", ["reverse", "js"])
def test_a_class_that_the_student_excludes_has_no_gradient(divergence: str) -> None:
    """0 log 0 is 0, and so is its slope: what is left is the divergence over the other classes."""
    s, t, _ = random_case(8, 6)
    s[:, 4] = -INF
    x = s.clone().requires_grad_()
    value = functional.kd(x, t, temperature=2.0, divergence=divergence)
    (slope,) = torch.autograd.grad(value, x)
    q, p = (t / 2).softmax(-1), (s / 2).softmax(-1)
    m = (p + q) / 2 if divergence == "js" else q
    expected = torch.special.xlogy(p, p / m).sum(-1)
    if divergence == "js":
        expected = (expected + (q * (q / m).log()).sum(-1)) / 2
    torch.testing.assert_close(value, 4 * expected.mean())
    assert torch.equal(slope[:, 4], torch.zeros(8, dtype=slope.dtype))
    kept = [0, 1, 2, 3, 5]

    def among(z: torch.Tensor) -> torch.Tensor:
        full = torch.full_like(s, -INF).index_copy(1, torch.tensor(kept), z)
        return functional.kd(full, t, temperature=2.0, divergence=divergence)

    assert gradcheck(among, s[:, kept].clone().requires_grad_())


def test_standardize_agrees() -> None:
    s, _, _ = random_case(8, 6)
    torch.testing.assert_close(plackett.standardize(s, eps=0.0), reference.standardize(s))


def test_every_loss_with_a_paper_has_a_reference() -> None:
    special_cases_of_pld = {"listmle", "position_listmle"}
    for name in set(plackett.losses.names()) - special_cases_of_pld:
        assert {"ce": "cross_entropy"}.get(name, name) in reference.__all__
