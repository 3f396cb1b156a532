"""The kernels through Triton's interpreter, which must be chosen before Triton is imported: see test_interpreted."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from plackett import functional as F
from plackett.choice import times
from plackett.kernels.fused import fused_rows
from plackett.kernels.launch import launch_topk, reachable
from plackett.kernels.launch_after import launch_times, launch_total
from plackett.kernels.launch_long import launch_long
from plackett.kernels.launching import interpreted
from plackett.losses.plackett_luce import Rows
from plackett.losses.rows import reduce_rows
from tests.cases import CASES, Case, random_case
from tests.kernels.held import OPTIONS, hold

pytestmark = [
    pytest.mark.skipif(not interpreted(), reason="needs TRITON_INTERPRET=1 before Triton is imported"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # NumPy warns of what `where` then does not take
]


def select_rows(
    s: Tensor, t: Tensor, y: Tensor | None, keep: Tensor | None, *, weights: Any, top_k: int | None, **o: Any
) -> Rows:
    """The selecting kernel whatever `plan` says, in blocks far smaller than the row."""
    name, given = (weights, None) if isinstance(weights, str) else ("given", weights)
    assert top_k is not None
    loss, slope, left = launch_topk(
        s, t, y, keep, o["temperature"], name, given, o["label_weight"], top_k, True, block=64, warps=1
    )
    return Rows(loss, slope, left)


def long_rows(
    s: Tensor, t: Tensor, y: Tensor | None, keep: Tensor | None, *, weights: Any, top_k: int | None, **o: Any
) -> Rows:
    """The kernels for rows past the chip, in runs and parts of 32 classes."""
    name, given = (weights, None) if isinstance(weights, str) else ("given", weights)
    kept = s.shape[1] if top_k is None else top_k
    return Rows(*launch_long(s, t, y, keep, o["temperature"], name, given, o["label_weight"], kept, True, bits=5))


def as_dtype(case: Case, dtype: torch.dtype) -> Case:
    return case._replace(student=case.student.to(dtype), teacher=case.teacher.to(dtype))


HALVES = [("tied", torch.bfloat16), ("gapped", torch.float16)]
KINDS = [(name, torch.float32) for name in CASES] + HALVES


@pytest.mark.parametrize(("name", "dtype"), KINDS)
def test_exact_rows_of_every_kind(name: str, dtype: torch.dtype) -> None:
    s, t, y = as_dtype(CASES[name](rows=2, classes=37, dtype=torch.float32), dtype)
    hold(fused_rows, s, t, y)
    hold(fused_rows, s[:1], t[:1], None, temperature=2.5)


@pytest.mark.parametrize("classes", [1, 2, 3, 31, 64, 65, 127, 251, 256])
def test_exact_at_awkward_sizes(classes: int) -> None:
    s, t, y = random_case(1, classes, torch.float32)
    hold(fused_rows, s, t, y)


@pytest.mark.parametrize("kind", ["uniform", "position", "given"])
@pytest.mark.parametrize("name", ["random", "gapped"])
def test_weights_by_rank(name: str, kind: str) -> None:
    s, t, y = CASES[name](rows=1, classes=70, dtype=torch.float32)
    weights = torch.rand(70) if kind == "given" else kind
    hold(fused_rows, s, t, y, weights=weights, label_weight=0.3)
    hold(select_rows, s, t, y, weights=weights, top_k=6)
    hold(fused_rows, s, t, None, weights=weights, top_k=30)


@pytest.mark.parametrize(("name", "dtype"), KINDS)
def test_selected_rows_of_every_kind(name: str, dtype: torch.dtype) -> None:
    s, t, y = as_dtype(CASES[name](rows=1, classes=150, dtype=torch.float32), dtype)
    hold(select_rows, s, t, y, top_k=9)
    hold(select_rows, s, t, None, top_k=5, temperature=3.0)
    hold(select_rows, s, t, y, top_k=1, label_weight=0.4)


@pytest.mark.parametrize("name", CASES)
def test_long_rows_of_every_kind(name: str) -> None:
    s, t, y = as_dtype(CASES[name](rows=1, classes=67, dtype=torch.float32), torch.bfloat16)
    hold(long_rows, s, t, y)
    if name in ("random", "gapped"):
        s, t, y = CASES[name](rows=1, classes=65, dtype=torch.float32)
        hold(long_rows, s, t, None, temperature=2.5)


def test_long_rows_with_weights_by_rank() -> None:
    s, t, y = CASES["gapped"](rows=1, classes=70, dtype=torch.float32)
    t[0, y[0]] = -torch.inf
    hold(long_rows, s, t, y, weights=torch.rand(70), label_weight=0.3, top_k=40)


def test_one_value_of_the_teacher_fills_a_long_row() -> None:
    s, t, y = random_case(1, 66, torch.float32)
    flat = torch.zeros_like(t)
    flat[:, 3] = 2
    hold(long_rows, s, flat, y)


def test_more_ties_than_can_be_held() -> None:
    s, t, y = random_case(2, 150, torch.float32)
    flat = torch.zeros_like(t)
    flat[:, 3] = 2
    hold(select_rows, s, flat, y, top_k=8)


def test_fewer_offers_than_choices() -> None:
    s, t, y = random_case(2, 150, torch.float32)
    few = torch.full_like(t, -torch.inf)
    few[:, 7], few[1, 100] = 1.0, 2.0
    hold(select_rows, s, few, y, top_k=8, label_weight=0.5)
    hold(fused_rows, s, few, y, label_weight=0.5)


def test_a_teacher_too_fine_for_fixed_point() -> None:
    s, t, y = random_case(2, 200, torch.float32)
    t = t * 1e-4
    t[:, 5] = 1e4
    hold(fused_rows, s, t, y, temperature=1e-4)


@pytest.mark.parametrize("run", [fused_rows, partial(select_rows), partial(long_rows)])
def test_rows_that_do_not_count_are_zero_whatever_stands_there(run: Any) -> None:
    s, t, y = random_case(3, 34, torch.float32)
    s[1], t[1] = float("nan"), float("inf")
    keep = torch.tensor([True, False, True])
    options = {**OPTIONS, "top_k": 7, "weights": "uniform"}
    got = run(s, t, y, keep, **options)
    alone = run(s[::2].contiguous(), t[::2].contiguous(), y[::2], None, **options)
    assert got.loss[1] == 0
    assert got.left_out[1] == 0
    assert not got.gradient[1].any()
    assert torch.equal(got.loss[::2], alone.loss)
    assert torch.equal(got.gradient[::2], alone.gradient)


def test_strides_and_narrow_labels() -> None:
    s, t, y = random_case(4, 50, torch.float32)
    want = fused_rows(s, t, y, None, **OPTIONS)
    assert want.gradient is not None
    wide = torch.cat([s, s], 1)[:, :50]
    across = t.t().contiguous().t()
    got = fused_rows(wide, across, y.int(), None, **OPTIONS)
    assert got.gradient is not None
    assert torch.equal(got.loss, want.loss)
    assert torch.equal(got.gradient, want.gradient)


def test_rows_that_lie_too_far_apart_are_copied() -> None:
    near = torch.empty_strided((2, 3), ((1 << 31) - 1, 1), device="meta")
    assert reachable(near) is near
    for strides in ((1 << 31, 1), (1, 1 << 30)):
        assert reachable(torch.empty_strided((2, 3), strides, device="meta")).stride() == (3, 1)


def test_no_gradient_is_computed_where_none_is_wanted() -> None:
    s, t, y = random_case(2, 20, torch.float32)
    want = fused_rows(s, t, y, None, **OPTIONS)
    got = fused_rows(s, t, y, None, **{**OPTIONS, "gradient": False})
    assert got.gradient is None
    assert torch.equal(got.loss, want.loss)


def test_no_rows() -> None:
    got = fused_rows(torch.zeros(0, 5), torch.zeros(0, 5), None, None, **OPTIONS)
    assert got.loss.shape == (0,)
    assert got.gradient is not None
    assert got.gradient.shape == (0, 5)


@pytest.mark.parametrize(("classes", "dtype"), [(1, torch.float32), (37, torch.bfloat16), (4099, torch.float16)])
def test_rows_of_a_gradient_times_numbers(classes: int, dtype: torch.dtype) -> None:
    g = torch.randn(3, classes).to(dtype)
    rounding = torch.finfo(dtype).eps if dtype != torch.float32 else 0.0  # the interpreter's is towards zero
    for scale in (torch.rand(3), torch.tensor(1 / 3).expand(3)):
        got, want = launch_times(g, scale), times(g, scale)
        assert got.dtype == dtype
        torch.testing.assert_close(got, want, rtol=rounding, atol=0)
    halved = launch_times(g, torch.tensor(0.5), count=torch.tensor(3.0))
    torch.testing.assert_close(halved, times(g, (torch.tensor(0.5) / 3).expand(3)), rtol=rounding, atol=0)
    own = g.clone()
    assert launch_times(own, scale, out=own) is own
    assert torch.equal(own, got)
    across = g.t().contiguous().t()
    torch.testing.assert_close(launch_times(across, scale), got, rtol=rounding, atol=0)
    assert launch_times(g[:0], scale[:0]).shape == (0, classes)


@pytest.mark.parametrize("rows", [1, 5, 1500])
@pytest.mark.parametrize("which", ["all", "some", "none"])
def test_the_sum_and_the_mean_of_the_rows_that_count(rows: int, which: str) -> None:
    keep = {"all": None, "some": torch.arange(rows) % 3 == 0, "none": torch.zeros(rows, dtype=torch.bool)}[which]
    loss = torch.rand(rows) if keep is None else torch.where(keep, torch.rand(rows), 0.0)
    total, nothing = launch_total(loss, keep, False)
    mean, count = launch_total(loss, keep, True)
    assert nothing is None
    assert count is not None
    assert count.item() == max(1, rows if keep is None else int(keep.sum()))
    torch.testing.assert_close(total, reduce_rows(loss, keep, "sum"))
    torch.testing.assert_close(mean, reduce_rows(loss, keep))
    if keep is not None:  # a mask may be a view
        assert torch.equal(launch_total(loss, keep.repeat_interleave(2)[::2], True)[0], mean)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("top_k", [None, 3])
def test_the_loss_through_the_kernels(reduction: str, top_k: int | None) -> None:
    """Ignored rows with labels that no class has, a mask, and numbers to divide by."""
    s, t, y = random_case(6, 20, torch.float32)
    y[1], y[2] = -100, 10_000
    mask = torch.tensor([True, True, False, True, True, False])
    s[2] = torch.nan
    s.requires_grad_()
    for how in ({"mask": mask}, {"mask": mask, "num_items": 8.0}, {"mask": mask & False}):
        found = []
        for impl in ("triton", "eager"):
            with torch.no_grad():
                alone = F.pld(s, t, y.to(torch.int16), top_k=top_k, reduction=reduction, impl=impl, **how)
            loss = F.pld(s, t, y, top_k=top_k, reduction=reduction, impl=impl, **how)
            torch.testing.assert_close(alone, loss)
            found += [loss, *torch.autograd.grad(loss, s, torch.full_like(loss, 0.3))]
        torch.testing.assert_close(found[0], found[2], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(found[1], found[3], rtol=1e-5, atol=1e-7)


def test_what_else_is_asked_of_the_one_number() -> None:
    case = random_case(4, 11, torch.float32)
    s = case.student.requires_grad_()

    def loss(s: Tensor, impl: str = "triton") -> Any:
        return F.pld(s, case.teacher, case.target, impl=impl)

    added = loss(s)
    added += loss(s)
    (slope,) = torch.autograd.grad(added, s, retain_graph=True)
    torch.testing.assert_close(slope, 2 * torch.autograd.grad(loss(s, "eager"), s)[0], rtol=1e-5, atol=1e-7)
    assert torch.equal(torch.autograd.grad(added, s)[0], slope), "a second backward finds the gradient changed"
    (first,) = torch.autograd.grad(loss(s), s, create_graph=True)
    torch.testing.assert_close(2 * first, slope)
    with pytest.raises(NotImplementedError, match=r"plackett\.reference\.pld"):
        first.sum().backward()
    both = torch.tensor([1.0, -2.0])
    (batched,) = torch.autograd.grad(loss(s), s, both, is_grads_batched=True)
    torch.testing.assert_close(2 * batched, slope * both[:, None, None])
    assert torch.autograd.functional.jacobian(loss, s.detach()).shape == s.shape
    torch.testing.assert_close(
        torch.func.jvp(loss, (s.detach(),), (slope,))[1], (slope * slope).sum() / 2, rtol=1e-5, atol=1e-6
    )
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(s.detach(), slope)
        tangent = torch.autograd.forward_ad.unpack_dual(loss(dual)).tangent
    torch.testing.assert_close(tangent, (slope * slope).sum() / 2, rtol=1e-5, atol=1e-6)


def test_what_torch_func_maps_beside_the_logits() -> None:
    s, t, y = random_case(4, 11, torch.float32)
    s.requires_grad_()
    found = torch.func.vmap(lambda c: c * F.pld(s, t, y, impl="triton"))(torch.ones(3))
    torch.testing.assert_close(found, F.pld(s, t, y).expand(3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_devices_own_nan_in_a_long_teacher(dtype: torch.dtype) -> None:
    """All bits but the sign: the lowest of keys, before which nothing lies. By rank its order is that of its class."""
    s, t, y = random_case(2, 100, torch.float32)
    bits, whole = (torch.int32, 0x7FFFFFFF) if dtype == torch.float32 else (torch.int16, 0x7FFF)
    t = t.to(dtype)
    t.view(bits)[:, [5, 40, 77]] = whole
    assert bool(t[:, 5].isnan().all())
    got = long_rows(s.to(dtype), t, y, None, **{**OPTIONS, "weights": "uniform"})
    assert bool(got.loss.isfinite().all())
    assert got.gradient is not None
    torch.testing.assert_close(got.gradient.float().sum(-1), torch.zeros(2), atol=2e-2, rtol=0)


def test_backward_goes_through_it() -> None:
    s, t, y = random_case(4, 20, torch.float32)
    s.requires_grad_()
    slopes = [
        torch.autograd.grad(F.pld(s, t, y, impl=impl), s, torch.tensor(0.3))[0] for impl in ("triton", "eager")
    ]  # fmt: skip
    torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-7)


def test_the_fused_layer_through_the_kernels() -> None:
    hidden, weight = torch.randn(9, 4, requires_grad=True), torch.randn(33, 4, requires_grad=True)
    t, y = torch.randn(9, 33), torch.randint(0, 33, (9,))
    y[4] = -100
    for how in ({}, {"top_k": 5}, {"reduction": "none"}):
        slopes = []
        for impl in ("triton", "eager"):
            loss = F.fused_linear_pld(hidden, weight, t, y, chunk=4, impl=impl, **how)
            slopes.append(torch.autograd.grad(loss, (hidden, weight), torch.full_like(loss, 0.7)))
        for one, other in zip(*slopes, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
