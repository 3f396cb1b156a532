"""DKD against arithmetic, against another formula, against its reference, and at its edges."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from plackett import DKDLoss, InputError, reference
from plackett.functional import dkd, kd
from tests.cases import Case, gapped_case, random_case


def test_by_hand() -> None:
    """p and q are chosen, the logits are their logarithms, and tau is 1."""
    p = torch.tensor([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]], dtype=torch.float64)
    q = torch.tensor([[0.8, 0.05, 0.15], [0.5, 0.1, 0.4]], dtype=torch.float64)
    # Row 1, label 0: b_t = (0.8, 0.2), b_s = (0.5, 0.5); the others: q' = (1/4, 3/4), p' = (1/2, 1/2).
    label_1 = 0.8 * math.log(0.8 / 0.5) + 0.2 * math.log(0.2 / 0.5)
    others_1 = 0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5)
    # Row 2, label 2: b_t = (0.4, 0.6), b_s = (0.6, 0.4); the others: q' = (5/6, 1/6), p' = (1/2, 1/2).
    label_2 = 0.4 * math.log(0.4 / 0.6) + 0.6 * math.log(0.6 / 0.4)
    others_2 = 5 / 6 * math.log(5 / 6 * 2) + 1 / 6 * math.log(1 / 6 * 2)
    expected = (1.5 * (label_1 + label_2) + 2.0 * (others_1 + others_2)) / 2
    value = dkd(p.log(), q.log(), torch.tensor([0, 2]), alpha=1.5, beta=2.0, temperature=1.0)
    assert value.item() == pytest.approx(expected, abs=1e-14)


@given(st.integers(2, 9), st.floats(0.5, 8.0), st.integers(0, 10_000))
def test_with_the_teachers_own_weight_it_is_kd(classes: int, tau: float, seed: int) -> None:
    """KD = label term + (1 - q_y) * rest term (equation 7 of the paper), row by row."""
    torch.manual_seed(seed)
    s, t, y = random_case(5, classes)
    label, rest = (dkd(s, t, y, alpha=a, beta=1 - a, temperature=tau, reduction="none") for a in (1.0, 0.0))
    q_y = torch.softmax(t / tau, -1).gather(-1, y[:, None]).squeeze(-1)
    together = label + (1 - q_y) * rest
    torch.testing.assert_close(together, kd(s, t, temperature=tau, reduction="none"), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("tau", [1.0, 4.0])
def test_against_the_reference(tau: float) -> None:
    s, t, y = random_case(9, 8)
    ours, truth = s.clone().requires_grad_(), s.clone().requires_grad_()
    a = dkd(ours, t, y, alpha=0.5, beta=3.0, temperature=tau)
    b = reference.dkd(truth, t, y, alpha=0.5, beta=3.0, temperature=tau)
    (2 * a).backward()
    (2 * b).backward()
    torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(ours.grad, truth.grad, rtol=1e-9, atol=1e-12)


def test_finite_differences() -> None:
    s, t, y = gapped_case(6, 5)
    y[2] = -100
    assert gradcheck(lambda x: dkd(x, t, y, reduction="none"), s.clone().requires_grad_())


def test_sure_students_and_teachers_lose_no_digits() -> None:
    """1 - p_y is 2e-18 in the student and 2e-20 in the teacher, which a difference from 1 rounds to 0."""
    s = torch.tensor([[40.0, 0.0, -1.0]], dtype=torch.float64)
    t = torch.tensor([[45.0, 0.0, 1.0]], dtype=torch.float64)
    q_rest = math.exp(math.log1p(math.e) - 45)
    p_rest = math.exp(math.log1p(math.exp(-1)) - 40)
    # (1 - q) log((1 - q) / (1 - p)) with 1 - q, 1 - p the small ones: q log(q / p) = q (p_rest - q_rest) to first order
    expected = q_rest * math.log(q_rest / p_rest) + (p_rest - q_rest)
    y = torch.tensor([0])
    assert dkd(s, t, y, beta=0.0, temperature=1.0).item() == pytest.approx(expected, abs=1e-17)
    gradient = torch.autograd.grad(dkd(x := s.clone().requires_grad_(), t, y, beta=0.0, temperature=1.0), x)[0]
    assert gradient[0, 1].item() == pytest.approx((p_rest - q_rest) / (1 + math.exp(-1)), rel=1e-9)


def test_one_class_is_zero_with_a_graph() -> None:
    s = torch.randn(4, 1, requires_grad=True)
    value = dkd(s, torch.randn(4, 1), torch.zeros(4, dtype=torch.long))
    value.backward()
    assert value.item() == 0.0
    assert torch.equal(s.grad, torch.zeros(4, 1))


def test_two_classes_have_no_rest_to_compare() -> None:
    s, t, y = random_case(5, 2)
    torch.testing.assert_close(dkd(s, t, y, beta=100.0), kd(s, t))


def test_unoffered_classes_are_left_out() -> None:
    s, t, y = random_case(6, 7)
    t[:, 3] = -torch.inf
    y = torch.tensor([0, 1, 2, 4, 5, 6])
    x = s.clone().requires_grad_()
    value = dkd(x, t, y)
    value.backward()
    rest = [0, 1, 2, 4, 5, 6]
    torch.testing.assert_close(value, dkd(s[:, rest], t[:, rest], torch.arange(6)))
    assert torch.equal(x.grad[:, 3], torch.zeros(6, dtype=x.dtype))


def test_a_label_that_is_not_offered_leaves_kd_of_the_rest() -> None:
    s, t, _ = random_case(4, 5)
    y = torch.tensor([2, 2, 2, 2])
    t[:, 2] = -torch.inf
    x = s.clone().requires_grad_()
    value = dkd(x, t, y, alpha=7.0, beta=3.0)
    value.backward()
    torch.testing.assert_close(value, 3.0 * kd(s, t))
    assert torch.equal(x.grad[:, 2], torch.zeros(4, dtype=x.dtype))


def test_a_single_offered_class_is_zero() -> None:
    s, t, _ = random_case(2, 4)
    t[:, 1:] = -torch.inf
    x = s.clone().requires_grad_()
    value = dkd(x, t, torch.tensor([0, 2]))  # the one offered, and another
    value.backward()
    assert value.item() == 0.0
    assert torch.equal(x.grad, torch.zeros_like(x))


def test_ignored_and_masked_rows_reach_nobody() -> None:
    s, t, y = random_case(6, 5)
    y[1] = -100
    mask = torch.arange(6) != 4
    counts = mask & (y != -100)
    s[~counts], t[~counts] = torch.nan, torch.nan
    x = s.clone().requires_grad_()
    value = dkd(x, t, y, mask=mask)
    value.backward()
    torch.testing.assert_close(value, dkd(s[counts], t[counts], y[counts]))
    assert torch.equal(x.grad[~counts], torch.zeros(2, 5, dtype=x.dtype))
    rows = dkd(s, t, y, mask=mask, reduction="none")
    assert torch.equal(rows[~counts], torch.zeros(2, dtype=rows.dtype))


def test_nothing_counts_is_a_zero_with_a_graph() -> None:
    s, t, _ = random_case(3, 4)
    x = s.requires_grad_()
    value = dkd(x, t, torch.full((3,), -100))
    value.backward()
    assert value.item() == 0.0
    assert torch.equal(x.grad, torch.zeros_like(x))


def test_accumulation_equals_the_full_batch() -> None:
    s, t, y = random_case(10, 6)
    y[3] = -100
    whole = dkd(s, t, y)
    parts = sum(dkd(s[i : i + 3], t[i : i + 3], y[i : i + 3], num_items=9) for i in range(0, 10, 3))
    torch.testing.assert_close(parts, whole)


def test_twin_leading_dimensions_and_strides() -> None:
    s, t, y = random_case(12, 5)
    grid = dkd(s.view(3, 4, 5), t.view(3, 4, 5), y.view(3, 4), reduction="none")
    assert torch.equal(grid.view(-1), dkd(s, t, y, reduction="none"))
    assert torch.equal(DKDLoss(beta=2.0)(s, t, y), dkd(s, t, y, beta=2.0))
    assert torch.equal(dkd(s.T.contiguous().T, t[:1].expand(12, 5), y), dkd(s, t[:1].repeat(12, 1), y))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_its_own_rounding_away(dtype: torch.dtype) -> None:
    s, t, y = random_case(16, 12, dtype)
    low, full = s.clone().requires_grad_(), s.float().requires_grad_()
    a, b = dkd(low, t, y), dkd(full, t.float(), y)
    a.backward()
    b.backward()
    assert a.dtype == torch.float32
    assert torch.equal(a, b)
    assert torch.equal(low.grad, full.grad.to(dtype))


def test_huge_logits() -> None:
    case = random_case(6, 5)
    s, t, y = Case((case.student * 1e4).float(), (case.teacher * 1e4).float(), case.target)
    x = s.requires_grad_()
    value = dkd(x, t, y)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(x.grad).all()
    torch.testing.assert_close(value.double(), dkd(s.detach().double(), t.double(), y), rtol=1e-5, atol=0)


def test_soft_targets_are_refused() -> None:
    s, t, _ = random_case(4, 5)
    with pytest.raises(InputError, match="integer labels only"):
        dkd(s, t, torch.softmax(t, -1))


@pytest.mark.slow  # the first compilation of a process is
def test_compiles_as_one_graph() -> None:
    s, t, y = random_case(8, 6, torch.float32)
    compiled = torch.compile(dkd, fullgraph=True)
    a, b = s.clone().requires_grad_(), s.clone().requires_grad_()
    compiled(a, t, y).backward()
    dkd(b, t, y).backward()
    torch.testing.assert_close(a.grad, b.grad)
