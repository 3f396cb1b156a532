"""The fused kernels at full size on a device, against the float64 truth."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from plackett import functional as F
from plackett import kernels
from plackett.kernels import launching
from plackett.kernels.fused import fused_rows
from plackett.kernels.launch import launch_topk
from plackett.losses.plackett_luce import Rows
from tests.cases import CASES
from tests.gpu.captured import captured
from tests.kernels.held import OPTIONS, hold

pytestmark = pytest.mark.gpu

# Primes, powers of two and their neighbours, and what people have.
SIZES = [1, 2, 3, 10, 31, 64, 65, 100, 127, 128, 251, 257, 512, 1000, 1021, 1024, 1025]
SIZES += [2047, 2049, 4093, 4096, 8191, 8192, 9000]
HALVES = [torch.bfloat16, torch.float16]


def drawn(name: str, rows: int, classes: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """A case whose two logits are both in `dtype`, on the device."""
    s, t, y = CASES[name](rows=rows, classes=classes, dtype=torch.float32)
    return s.to("cuda", dtype), t.to("cuda", dtype), y.cuda()


def select_rows(
    s: Tensor, t: Tensor, y: Tensor | None, keep: Tensor | None, *, weights: Any, top_k: int | None, **o: Any
) -> Rows:
    assert top_k is not None
    kept = min(top_k, s.shape[1])
    loss, slope, left = launch_topk(s, t, y, keep, o["temperature"], weights, None, o["label_weight"], kept, True)
    return Rows(loss, slope, left)


@pytest.mark.parametrize("classes", SIZES)
def test_exact_in_single(classes: int) -> None:
    s, t, y = drawn("random", 64, classes)
    hold(fused_rows, s, t, y)


@pytest.mark.parametrize("classes", [7, 1000, 2047, 8192])
@pytest.mark.parametrize("dtype", HALVES)
def test_exact_in_half(dtype: torch.dtype, classes: int) -> None:
    s, t, y = drawn("random", 64, classes, dtype)
    hold(fused_rows, s, t, y, temperature=4.0)


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_exact_rows_of_every_kind(name: str, labelled: bool) -> None:
    s, t, y = drawn(name, 64, 1000)
    hold(fused_rows, s, t, y if labelled else None)


@pytest.mark.parametrize("classes", [8193, 9000, 32000, 65537, 128256, 152064])
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_long_rows(dtype: torch.dtype, classes: int) -> None:
    s, t, y = drawn("random", 16, classes, dtype)
    hold(fused_rows, s, t, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_long_rows_of_every_kind(name: str, dtype: torch.dtype) -> None:
    s, t, y = drawn(name, 16, 20011, dtype)
    hold(fused_rows, s, t, y)
    hold(fused_rows, s, t, None, temperature=4.0)


def test_a_flat_teacher_and_a_narrow_one_in_long_rows() -> None:
    s, t, y = drawn("random", 16, 20000)
    flat = torch.zeros_like(s)
    flat[:, 11] = 1
    hold(fused_rows, s, flat, y)
    hold(fused_rows, s, 5 + t * 1e-4, y)


@pytest.mark.parametrize("kind", ["uniform", "position", "given"])
def test_long_rows_with_weights_by_rank(kind: str) -> None:
    s, t, y = drawn("gapped", 16, 12000)
    weights = torch.rand(12000, device="cuda") if kind == "given" else kind
    hold(fused_rows, s, t, y, weights=weights, label_weight=0.3, top_k=5000)


def test_long_rows_stay_within_two_buffers_beside_the_gradient() -> None:
    s, t, y = drawn("random", 512, 32000, torch.bfloat16)
    fused_rows(s, t, y, None, **OPTIONS)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    held = fused_rows(s, t, y, None, **OPTIONS)
    assert held.gradient is not None
    assert torch.cuda.max_memory_allocated() - before < 3.05 * s.numel() * s.element_size()


@pytest.mark.parametrize("kind", ["uniform", "position", "given"])
def test_exact_weights_by_rank(kind: str) -> None:
    s, t, y = drawn("gapped", 64, 1000)
    weights = torch.rand(1000, device="cuda") if kind == "given" else kind
    hold(fused_rows, s, t, y, weights=weights, label_weight=0.3, top_k=500)


@pytest.mark.parametrize("classes", [1, 65, 1000, 4097, 32000, 128256])
def test_selected_in_single(classes: int) -> None:
    s, t, y = drawn("random", 16, classes)
    hold(select_rows, s, t, y, top_k=min(64, classes))


@pytest.mark.parametrize("name", CASES)
def test_selected_rows_of_every_kind(name: str) -> None:
    s, t, y = drawn(name, 16, 20000, torch.bfloat16)
    hold(select_rows, s, t, y, top_k=64)
    hold(select_rows, s, t, None, top_k=64)


def test_selected_from_a_flat_teacher() -> None:
    s, _, y = drawn("random", 16, 20000)
    flat = torch.zeros_like(s)
    flat[:, 11] = 1
    hold(select_rows, s, flat, y, top_k=64)


@pytest.mark.parametrize(("top_k", "classes"), [(None, 4000), (16, 4000), (None, 20000)])
def test_the_same_bits_again(top_k: int | None, classes: int) -> None:
    s, t, y = drawn("tied", 512, classes, torch.bfloat16)
    first, *others = [fused_rows(s, t, y, None, **{**OPTIONS, "top_k": top_k}) for _ in range(4)]
    for again in others:
        assert torch.equal(first.loss, again.loss)
        assert first.gradient is not None
        assert again.gradient is not None
        assert torch.equal(first.gradient, again.gradient)


@pytest.mark.parametrize(("top_k", "classes"), [(None, 4000), (16, 4000), (None, 12000)])
def test_strides_labels_and_rows_left_out(top_k: int | None, classes: int) -> None:
    s, t, y = drawn("random", 64, classes)
    keep = torch.arange(64, device="cuda") % 3 != 0
    options = {**OPTIONS, "top_k": top_k}
    want = fused_rows(s, t, y, keep, **options)
    padded = torch.cat([s, s], 1)[:, :classes]
    got = fused_rows(padded, t.t().contiguous().t(), y.int(), keep, **options)
    assert want.gradient is not None
    assert got.gradient is not None
    # Other strides are loaded in another layout, and reductions then add in another order.
    torch.testing.assert_close(got.loss, want.loss, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(got.gradient, want.gradient, rtol=1e-5, atol=1e-7)
    assert not got.gradient[::3].any()


@pytest.mark.parametrize(("top_k", "classes"), [(None, 4000), (16, 4000), (None, 12000)])
def test_one_graph_under_compile(top_k: int | None, classes: int) -> None:
    s, t, y = drawn("random", 64, classes)
    s.requires_grad_()

    def loss(s: Tensor) -> Tensor:
        return F.pld(s * 1.0, t, y, top_k=top_k)

    want = loss(s)
    (slope,) = torch.autograd.grad(want, s)
    compiled = torch.compile(loss, fullgraph=True)(s)
    (compiled_slope,) = torch.autograd.grad(compiled, s)
    torch.testing.assert_close(compiled, want)
    torch.testing.assert_close(compiled_slope, slope)


@pytest.mark.parametrize(("top_k", "classes"), [(None, 4000), (16, 4000), (None, 12000)])
def test_a_cuda_graph_holds_it(top_k: int | None, classes: int) -> None:
    s, t, y = drawn("random", 64, classes, torch.bfloat16)
    s.requires_grad_()

    def step() -> tuple[Tensor, Tensor]:
        value = F.pld(s, t, y, top_k=top_k)
        return value, torch.autograd.grad(value, s)[0]

    graph, held = captured(step)
    graph.replay()
    for kept, want in zip(held, step(), strict=True):
        assert torch.equal(kept, want)


def test_a_launch_by_hand_is_triton_s_own() -> None:
    """What a compiled kernel was specialised on changes from call to call: addresses, strides, dtypes, options."""
    calls = []
    for classes, skip in ((100, 0), (1000, 0), (100, 1), (101, 0), (100, 0)):
        for rows, dtype in ((1, torch.float32), (64, torch.bfloat16), (64, torch.float32)):
            flat = torch.randn(2, rows * classes + skip, device="cuda").to(dtype)[:, skip:]  # 16 bytes apart, or not
            s, t = flat.view(2, rows, classes)
            calls += [(s, t, torch.arange(rows, device="cuda") % 7, kept) for kept in (None, 16)]

    def all_of_them() -> list[Tensor]:
        found: list[Tensor] = []
        for s, t, y, top_k in calls:
            s = s.detach().requires_grad_()
            for reduction in ("mean", "sum"):
                loss = F.pld(s, t, y, top_k=top_k, reduction=reduction)
                found += [loss, *torch.autograd.grad(loss, s, torch.full_like(loss, 0.3))]
        return found

    first, again = all_of_them(), all_of_them()
    assert launching._started
    with launching.through_triton():
        truth = all_of_them()
    for one, other, want in zip(first, again, truth, strict=True):
        assert torch.equal(one, want)
        assert torch.equal(other, want)


@pytest.mark.parametrize("how", [{}, {"top_k": 16}, {"reduction": "sum"}])
def test_rows_that_do_not_count(how: dict[str, Any]) -> None:
    """Labels out of range and NaN in rows that are ignored or masked; the CPU's numbers."""
    s, t, y = drawn("random", 64, 1000)
    y[3], y[5], y[7] = -100, 10_000, -1
    mask = torch.ones(64, dtype=torch.bool, device="cuda")
    mask[[5, 7]] = False
    s[3] = torch.nan
    a, b = s.requires_grad_(), s.detach().cpu().requires_grad_()
    found = F.pld(a, t, y, mask=mask, **how)
    want = F.pld(b, t.cpu(), y.cpu(), mask=mask.cpu(), **how)
    torch.testing.assert_close(found.cpu(), want, rtol=1e-5, atol=1e-6)
    slopes = torch.autograd.grad(found, a)[0].cpu(), torch.autograd.grad(want, b)[0]
    torch.testing.assert_close(*slopes, rtol=1e-4, atol=1e-6)


def test_soft_targets_through_the_kernels() -> None:
    s, t, y = drawn("random", 64, 1000)
    p = torch.nn.functional.one_hot(y, 1000).float() * 0.9 + 0.1 / 1000
    torch.testing.assert_close(F.pld(s, t, p), F.pld(s, t, p, impl="eager"), rtol=1e-5, atol=1e-6)


def test_it_says_what_it_takes() -> None:
    s = torch.zeros(2, 1000, device="cuda")
    assert kernels.why(s).startswith("triton: the student's logits are on a CUDA device; a row of 1000 classes")
    assert kernels.why(s.expand(2, -1).repeat(1, 4), top_k=16).endswith("selected, not sorted.")
    assert kernels.why(s.double()).startswith("eager: the student's logits are torch.float64")
