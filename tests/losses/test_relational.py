"""DIST against arithmetic, against another formula, against its reference, and at its edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from plackett import DISTLoss, InputError, reference
from plackett.functional import dist
from tests.cases import gapped_case, random_case


def test_by_hand() -> None:
    """p and q are chosen, and the logits are their logarithms."""
    p = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]], dtype=torch.float64)
    q = torch.tensor([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3]], dtype=torch.float64)
    # Row 1, times 30: p - 1/3 = (8, -1, -7), q - 1/3 = (5, -4, -1): 40 + 4 + 7 = 51, norms sqrt 114 and sqrt 42.
    # Row 2, times 30: (-4, -1, 5) and (-7, 8, -1): 28 - 8 - 5 = 15, norms sqrt 42 and sqrt 114.
    inter = (51 + 15) / math.sqrt(114 * 42) / 2
    # Columns of two rows correlate by sign: class 0 falls in both (+1); class 1 is constant in p, class 2 in q (0).
    intra = 1 / 3
    expected = 2.0 * (1 - inter) + 3.0 * (1 - intra)
    assert dist(p.log(), q.log(), beta=2.0, gamma=3.0, eps=0.0).item() == pytest.approx(expected, abs=1e-14)


def by_numpy(s: Tensor, t: Tensor, tau: float, beta: float, gamma: float) -> float:
    """np.corrcoef of every row and column, over what is offered; tau^2 outside."""
    offered = (t > -torch.inf).numpy()
    p, q = np.zeros(s.shape), np.zeros(s.shape)
    for n, o in enumerate(offered):
        for x, out in ((s, p), (t, q)):
            e = np.exp((x[n].numpy()[o] - x[n].numpy()[o].max()) / tau)
            out[n, o] = e / e.sum()
    inter = [1 - np.corrcoef(p[n, o], q[n, o])[0, 1] for n, o in enumerate(offered)]
    intra = [1 - np.corrcoef(p[o, c], q[o, c])[0, 1] for c, o in enumerate(offered.T) if o.sum() > 1]
    intra += [1.0 for o in offered.T if o.sum() == 1]
    return float(tau**2 * (beta * np.mean(inter) + gamma * np.mean(intra)))


@pytest.mark.parametrize("tau", [1.0, 4.0])
@pytest.mark.parametrize("make", [random_case, gapped_case])
def test_against_corrcoef(make: object, tau: float) -> None:
    s, t, _ = make(8, 6)  # type: ignore[operator]
    value = dist(s, t, beta=0.7, gamma=1.3, temperature=tau, eps=0.0)
    assert value.item() == pytest.approx(by_numpy(s, t, tau, 0.7, 1.3), rel=1e-9)


@pytest.mark.parametrize("scale", ["tau2", None])
def test_against_the_reference(scale: str | None) -> None:
    s, t, _ = random_case(9, 7)
    for tau in (1.0, 2.5):
        ours, truth = s.clone().requires_grad_(), s.clone().requires_grad_()
        a = dist(ours, t, beta=2.0, temperature=tau, scale=scale, eps=0.0)  # type: ignore[arg-type]
        b = reference.dist(truth, t, beta=2.0, temperature=tau, scale=scale)
        (2 * a).backward()
        (2 * b).backward()
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(ours.grad, truth.grad, rtol=1e-8, atol=1e-11)


def test_published_eps_is_a_small_change() -> None:
    s, t, _ = random_case(64, 20)
    assert dist(s, t).item() != dist(s, t, eps=0.0).item()
    assert dist(s, t).item() == pytest.approx(dist(s, t, eps=0.0).item(), rel=1e-3)


def test_finite_differences() -> None:
    s, t, _ = gapped_case(5, 6)
    mask = torch.tensor([True, True, False, True, True])
    assert gradcheck(lambda x: dist(x, t, temperature=2.0, gamma=0.5, mask=mask), s.clone().requires_grad_())


def test_twin_and_leading_dimensions() -> None:
    s, t, _ = random_case(12, 5)
    grid = dist(s.view(3, 4, 5), t.view(3, 4, 5), temperature=4.0)
    assert torch.equal(grid, dist(s, t, temperature=4.0))
    assert torch.equal(DISTLoss(temperature=4.0)(s, t), grid)
    mask = torch.rand(3, 4) < 0.6
    assert torch.equal(dist(s.view(3, 4, 5), t.view(3, 4, 5), mask=mask), dist(s, t, mask=mask.view(-1)))


def test_one_class_is_zero_with_a_graph() -> None:
    s = torch.randn(4, 1, requires_grad=True)
    value = dist(s, torch.randn(4, 1))
    value.backward()
    assert value.item() == 0.0
    assert torch.equal(s.grad, torch.zeros(4, 1))


def test_two_classes_correlate_by_sign() -> None:
    s = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    t = torch.tensor([[5.0, 0.0], [1.0, 0.0]])
    # Rows: +1 and -1. Columns: p falls from row 1 to row 2, and so does q: +1 and +1.
    assert dist(s, t).item() == pytest.approx(1.0, abs=1e-5)


def test_a_batch_of_one_has_intra_term_one_and_no_gradient_from_it() -> None:
    s, t, _ = random_case(1, 6)
    with_intra, without = s.clone().requires_grad_(), s.clone().requires_grad_()
    a, b = dist(with_intra, t, gamma=1.0), dist(without, t, gamma=0.0)
    a.backward()
    b.backward()
    assert a.item() == pytest.approx(b.item() + 1.0)
    assert torch.equal(with_intra.grad, without.grad)


def test_one_counted_row_is_a_batch_of_one() -> None:
    s, t, _ = random_case(4, 6)
    mask = torch.tensor([False, False, True, False])
    torch.testing.assert_close(dist(s, t, mask=mask), dist(s[2:3], t[2:3]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("classes", [3, 7, 1000])
def test_constant_rows_and_columns(dtype: torch.dtype, classes: int) -> None:
    """Uniform rows are constant up to rounding; their correlation is 0, and no gradient passes them."""
    s, t, _ = random_case(4, classes, dtype, 1.0)
    s[0], t[1] = 0.3, -0.7  # row 0 uniform in the student, row 1 in the teacher
    x = s.clone().requires_grad_()
    value = dist(x, t, gamma=0.0)
    value.backward()
    others = dist(s[2:], t[2:], gamma=0.0).item()
    assert value.item() == pytest.approx((1 + 1 + 2 * others) / 4, rel=1e-5)
    assert torch.equal(x.grad[:2], torch.zeros(2, classes, dtype=dtype))
    same = s[2:3].expand(4, -1).clone().requires_grad_()  # every column constant
    value = dist(same, t, beta=0.0)
    value.backward()
    assert value.item() == 1.0
    assert torch.equal(same.grad, torch.zeros_like(same))


def test_masked_rows_reach_nobody() -> None:
    s, t, _ = random_case(6, 5)
    mask = torch.tensor([True, False, True, True, False, True])
    s[~mask], t[~mask] = torch.nan, torch.inf
    x = s.clone().requires_grad_()
    value = dist(x, t, mask=mask)
    value.backward()
    torch.testing.assert_close(value, dist(s[mask], t[mask]))
    assert torch.equal(x.grad[~mask], torch.zeros(2, 5, dtype=x.dtype))
    assert bool(x.grad[mask].any())


def test_nothing_counts_is_a_zero_with_a_graph() -> None:
    s, t, _ = random_case(3, 4)
    for x, mask in (
        (s.requires_grad_(), torch.zeros(3, dtype=torch.bool)),
        (torch.empty(0, 4, requires_grad=True), None),
    ):
        value = dist(x, t[: len(x)].to(x.dtype), mask=mask)
        value.backward()
        assert value.item() == 0.0
        assert torch.equal(x.grad, torch.zeros_like(x))


def test_unoffered_classes_are_left_out() -> None:
    s, t, _ = random_case(6, 7)
    t[:, 2] = -torch.inf
    x = s.clone().requires_grad_()
    value = dist(x, t, temperature=2.0)
    value.backward()
    rest = [0, 1, 3, 4, 5, 6]
    torch.testing.assert_close(value, dist(s[:, rest], t[:, rest], temperature=2.0))
    assert torch.equal(x.grad[:, 2], torch.zeros(6, dtype=x.dtype))


def test_sum_and_num_items() -> None:
    s, t, _ = random_case(6, 5)
    mask = torch.tensor([True, False, True, True, False, True])
    mean = dist(s, t, mask=mask)
    torch.testing.assert_close(dist(s, t, mask=mask, reduction="sum"), mean * 4)
    torch.testing.assert_close(dist(s, t, mask=mask, num_items=8), mean * 4 / 8)
    torch.testing.assert_close(dist(s, t, num_items=torch.tensor(12)), dist(s, t) / 2)


def test_no_value_a_row() -> None:
    s, t, _ = random_case(4, 5)
    with pytest.raises(InputError, match="one number a batch; use mean or sum"):
        dist(s, t, reduction="none")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_its_own_rounding_away(dtype: torch.dtype) -> None:
    s, t, _ = random_case(16, 12, dtype)
    low, full = s.clone().requires_grad_(), s.float().requires_grad_()
    a, b = dist(low, t, temperature=4.0), dist(full, t.float(), temperature=4.0)
    a.backward()
    b.backward()
    assert a.dtype == torch.float32
    assert torch.equal(a, b)
    assert torch.equal(low.grad, full.grad.to(dtype))


def test_huge_logits_and_strides() -> None:
    s, t, _ = random_case(6, 5)
    x = (s * 1e4).float().requires_grad_()
    value = dist(x, (t * 1e4).float(), temperature=4.0)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(x.grad).all()
    assert torch.equal(dist(s.T.contiguous().T, t), dist(s, t))
    torch.testing.assert_close(dist(s, t[:1].expand(6, 5)), dist(s, t[:1].repeat(6, 1)))


@given(st.integers(2, 9), st.integers(2, 9), st.floats(0.3, 6.0), st.integers(0, 10_000))
def test_bounds_and_invariance(rows: int, classes: int, tau: float, seed: int) -> None:
    """Correlations lie in [-1, 1]; a shift of a row's logits and a permutation of classes change nothing."""
    torch.manual_seed(seed)
    s, t, _ = random_case(rows, classes)
    value = dist(s, t, temperature=tau, scale=None).item()
    assert -1e-9 <= value <= 4 + 1e-9
    shift, order = torch.randn(rows, 1, dtype=s.dtype), torch.randperm(classes)
    moved = dist((s + shift)[:, order], t[:, order], temperature=tau, scale=None).item()
    assert moved == pytest.approx(value, abs=1e-6)
    assert dist(t, t, temperature=tau, scale=None, eps=0.0).item() == pytest.approx(0, abs=1e-9)


@pytest.mark.slow  # the first compilation of a process is
def test_compiles_as_one_graph() -> None:
    s, t, _ = random_case(8, 6, torch.float32)
    mask = torch.arange(8) != 3
    compiled = torch.compile(dist, fullgraph=True)
    a, b = s.clone().requires_grad_(), s.clone().requires_grad_()
    compiled(a, t, mask=mask, temperature=4.0).backward()
    dist(b, t, mask=mask, temperature=4.0).backward()
    torch.testing.assert_close(a.grad, b.grad)


def test_a_student_of_nan_shows() -> None:
    student, teacher = torch.randn(4, 5), torch.randn(4, 5)
    student[1, 2] = torch.nan
    assert dist(student, teacher).isnan()
