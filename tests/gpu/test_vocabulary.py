"""Sparse teachers and the fused last layer at full size on a device."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from plackett import functional as F
from plackett.choice import times
from plackett.functional import LinearTeacher, SparseTeacher
from plackett.kernels.launch_after import launch_times
from tests.cases import CASES
from tests.gpu.captured import captured

pytestmark = pytest.mark.gpu

V, D = 32000, 256


def layer(tokens: int = 600, dtype: torch.dtype = torch.bfloat16, classes: int = V) -> tuple[Tensor, Tensor, Tensor]:
    hidden = torch.randn(tokens, D, device="cuda").to(dtype)
    weight = (3 * torch.randn(classes, D, device="cuda") / D**0.5).to(dtype)
    return hidden.requires_grad_(), weight.requires_grad_(), torch.randint(0, classes, (tokens,), device="cuda")


def off(found: Tensor, want: Tensor) -> float:
    return float((found.double() - want.double()).norm() / want.double().norm().clamp_min(1e-30))


def test_a_single_number_is_not_rounded_before_it_multiplies() -> None:
    """A mean over 1021 rows in bfloat16: rounding 1/1021 first would shift the whole gradient by 0.2 %."""
    g = torch.randn(1021, 1000, device="cuda").bfloat16()
    scale = (torch.ones((), device="cuda") / 1021).expand(1021)
    want = (g.float() * scale.unsqueeze(-1)).bfloat16()
    for multiply in (times, launch_times):
        assert torch.equal(multiply(g, scale), want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("classes", [1, 7, 100, 1000, 4097, 152064])
def test_rows_times_numbers(classes: int, dtype: torch.dtype) -> None:
    g, scale = torch.randn(37, classes, device="cuda").to(dtype), torch.rand(37, device="cuda")
    poison = torch.full_like(g, float("nan"))
    assert torch.equal(launch_times(g, scale, out=poison), (g.float() * scale.unsqueeze(-1)).to(dtype))


def test_more_than_two_to_the_31_numbers() -> None:
    """The last row's offset does not fit 32 bits."""
    rows, classes = 14200, 152064
    s, t = (torch.zeros(rows, classes, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    drawn = torch.randn(2, 3, classes, device="cuda").mul(3).bfloat16()
    s[-3:], t[-3:] = drawn[0], drawn[1]
    y = torch.randint(0, classes, (rows,), device="cuda")
    last = slice(-3, None)
    for top_k in (None, 64):
        a, b = s[last].detach().clone().requires_grad_(), s.detach().requires_grad_()
        few = F.pld(a, t[last], y[last], top_k=top_k, reduction="none")
        every = F.pld(b, t, y, top_k=top_k, reduction="none")
        torch.testing.assert_close(every[last], few, rtol=1e-5, atol=1e-5)
        (few_slope,) = torch.autograd.grad(few.sum(), a)
        (slope,) = torch.autograd.grad(every.sum(), b)
        torch.testing.assert_close(slope[last], few_slope, rtol=1e-2, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", [name for name in CASES if name != "gapped"])
def test_a_sparse_teacher_is_top_k_of_the_whole_one(name: str, dtype: torch.dtype) -> None:
    s, t, y = CASES[name](rows=16, classes=20000, dtype=torch.float32)
    s, t, y = s.to("cuda", dtype).requires_grad_(), t.to("cuda", dtype), y.cuda()
    kept = SparseTeacher.of(t, y, 64, temperature=2.0)
    want = F.pld(s.double(), t.double(), y, top_k=64, temperature=2.0, reduction="sum")
    got = F.sparse_pld(s, kept, y, temperature=2.0, reduction="sum")
    torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-5)
    assert off(*(torch.autograd.grad(loss, s)[0] for loss in (got, want))) < (1e-5 if dtype == torch.float32 else 4e-3)


@pytest.mark.parametrize("kind", ["logits", "linear", "sparse"])
@pytest.mark.parametrize("top_k", [None, 64])
def test_the_fused_layer_is_the_layer_and_the_loss(kind: str, top_k: int | None) -> None:
    hidden, weight, y = layer()
    with torch.no_grad():
        of = LinearTeacher(torch.randn(600, D, device="cuda").bfloat16(), weight.flip(0) * 1.0)
        logits = torch.nn.functional.linear(of.hidden, of.weight)
    y[7] = -100
    teacher: Any = {"logits": logits, "linear": of}.get(kind)
    chosen = top_k
    if kind == "sparse":
        teacher, chosen, top_k = SparseTeacher.of(logits, y, 64), None, 64
    # The truth from the same rounded logits, since it is the loss and its gradients that are held here.
    whole = torch.nn.functional.linear(hidden, weight).detach().double().requires_grad_()
    want = F.pld(whole, logits.double(), y, top_k=top_k)
    (slope,) = torch.autograd.grad(want, whole)
    got = F.fused_linear_pld(hidden, weight, teacher, y, top_k=chosen, chunk=128)
    torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-5)
    of_hidden, of_weight = torch.autograd.grad(got, (hidden, weight))
    assert off(of_hidden, slope @ weight.detach().double()) < 6e-3
    assert off(of_weight, slope.t() @ hidden.detach().double()) < 6e-3


def test_the_fused_layer_holds_no_logits() -> None:
    tokens = 4096
    hidden, weight, y = layer(tokens)
    teacher = LinearTeacher(torch.randn(tokens, D, device="cuda").bfloat16(), weight.detach().flip(0).contiguous())

    def step() -> None:
        F.fused_linear_pld(hidden, weight, teacher, y, top_k=64, chunk=256).backward()

    step()
    hidden.grad = weight.grad = None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    assert torch.cuda.max_memory_allocated() - before < tokens * V * 2 / 2  # bytes of half the student's logits


def test_the_fused_layer_in_a_cuda_graph_waits_for_nobody() -> None:
    hidden, weight, y = layer(300)
    t = torch.randn(300, V, device="cuda").bfloat16()

    def step() -> tuple[Tensor, ...]:
        value = F.fused_linear_pld(hidden, weight, t, y, top_k=64, chunk=128)
        return value, *torch.autograd.grad(value, (hidden, weight))

    graph, held = captured(step)
    graph.replay()
    for kept, want in zip(held, step(), strict=True):
        torch.testing.assert_close(kept, want, rtol=1e-2, atol=1e-6)


def test_the_fused_layer_in_a_compiled_graph_and_under_autocast() -> None:
    hidden, weight, y = layer(200, torch.float32)
    t = torch.randn(200, V, device="cuda")

    def loss(h: Tensor, w: Tensor) -> Tensor:
        return F.fused_linear_pld(h * 1.0, w, t, y, top_k=64, chunk=64)

    want = torch.autograd.grad(loss(hidden, weight), (hidden, weight))
    found = torch.autograd.grad(torch.compile(loss, fullgraph=True)(hidden, weight), (hidden, weight))
    for one, other in zip(found, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)
    with torch.autocast("cuda", torch.bfloat16):
        half = torch.autograd.grad(loss(hidden, weight), (hidden, weight))
    for one, other in zip(half, want, strict=True):
        assert one.dtype == torch.float32
        assert off(one, other) < 0.05


@pytest.mark.parametrize(("top_k", "classes"), [(None, 1000), (None, 12000), (64, 12000)])
def test_the_loss_under_autocast_and_ddp(top_k: int | None, classes: int, tmp_path: Any) -> None:
    """One process of torch's group: the wrapper, its hooks and half-precision logits are what is tried."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    net = torch.nn.Linear(64, classes, device="cuda")
    x, t = torch.randn(32, 64, device="cuda"), torch.randn(32, classes, device="cuda").bfloat16()
    y = torch.randint(0, classes, (32,), device="cuda")

    def slope(network: Any) -> Tensor:
        net.weight.grad = None
        with torch.autocast("cuda", torch.bfloat16):
            logits = network(x)
            assert logits.dtype == torch.bfloat16
            loss = F.pld(logits, t, y, top_k=top_k)
        loss.backward()
        assert net.weight.grad is not None
        return net.weight.grad.clone()

    alone = slope(net)
    dist.init_process_group("nccl", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        together = slope(DistributedDataParallel(net))
    finally:
        dist.destroy_process_group()
    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-7)
