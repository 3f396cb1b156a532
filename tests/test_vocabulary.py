"""Sparse teachers and the fused last layer, against the whole logits' loss."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import plackett
from plackett import InputError, reference
from plackett import functional as F
from plackett.functional import LinearTeacher, SparseTeacher
from tests.cases import CASES, random_case


def slope(loss: Tensor, of: Tensor) -> Tensor:
    return torch.autograd.grad(loss, of)[0]


@pytest.mark.parametrize("k", [1, 4, 11])
@pytest.mark.parametrize("name", CASES)
def test_a_sparse_teacher_is_top_k_of_the_whole_one(name: str, k: int) -> None:
    s, t, y = CASES[name](rows=9, classes=11)
    if name == "gapped":
        s, t, y = CASES[name](rows=9, classes=11)
        t[:, :9] = -torch.inf  # fewer offered than k: then the whole teacher is kept
        t[torch.arange(9), y] = 1.0
        k = 11
    s.requires_grad_()
    for target in (y, None):
        want, left = F.pld(s, t, target, top_k=k, temperature=2.5, reduction="sum", return_left_out=True)
        truth = reference.pld(s, t, target, top_k=k, temperature=2.5, reduction="sum")
        kept = SparseTeacher.of(t, target, k, temperature=2.5)
        shuffled = torch.randperm(k)
        kept = kept._replace(values=kept.values[:, shuffled], indices=kept.indices[:, shuffled].int())
        got, got_left = F.sparse_pld(s, kept, target, temperature=2.5, reduction="sum", return_left_out=True)
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(got, truth, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(got_left, left, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(slope(got, s), slope(want, s), rtol=1e-9, atol=1e-12)


def test_a_sparse_teacher_that_does_not_offer_the_label() -> None:
    s, t, y = random_case(5, 12)
    t[torch.arange(5), y] = -torch.inf
    s.requires_grad_()
    want = F.pld(s, t, y, top_k=12, label_weight=0.7)
    got = F.sparse_pld(s, SparseTeacher.of(t, y, 12), y, label_weight=0.7)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(slope(got, s), slope(want, s))


def test_sparse_rows_that_do_not_count() -> None:
    s, t, y = random_case(6, 12, torch.float32)
    kept = SparseTeacher.of(t, y, 3)
    y = y.clone()
    y[2] = -100
    kept.values[2], kept.indices[2] = float("nan"), -1
    s.requires_grad_()
    mask = torch.arange(6) != 4
    got = F.sparse_pld(s, kept, y, mask=mask, num_items=8)
    want = F.pld(s, t, y, top_k=3, mask=mask, num_items=8)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(slope(got, s), slope(want, s))


def layer(n: int = 7, d: int = 5, v: int = 13, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    hidden, weight, bias = (torch.randn(shape, dtype=torch.float64).to(dtype) for shape in ((n, d), (v, d), (v,)))
    return hidden.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()


def teachers(n: int, v: int, y: Tensor) -> dict[str, tuple[Any, Tensor, int | None]]:
    """Name -> teacher, its whole logits, and the choices charged."""
    hidden, weight, bias = (torch.randn(shape, dtype=torch.float64) for shape in ((n, 4), (v, 4), (v,)))
    logits = hidden @ weight.t() + bias
    return {
        "logits": (logits, logits, 6),
        "linear": (LinearTeacher(hidden, weight, bias), logits, None),
        "sparse": (SparseTeacher.of(logits, y, 6, temperature=1.5), logits, 6),
    }


@pytest.mark.parametrize("kind", ["logits", "linear", "sparse"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_fused_layer_is_the_layer_and_the_loss(kind: str, reduction: str) -> None:
    n, v = 7, 13
    given = layer(n, 5, v)
    hidden, weight, bias = given
    y = torch.randint(0, v, (n,))
    teacher, logits, top_k = teachers(n, v, y)[kind]
    y[3] = -100
    how: dict[str, Any] = {"reduction": reduction, "temperature": 1.5}
    want, left = F.pld(hidden @ weight.t() + bias, logits, y, top_k=top_k, return_left_out=True, **how)
    if kind != "sparse":
        how["top_k"] = top_k
    got, got_left = F.fused_linear_pld(hidden, weight, teacher, y, bias, chunk=3, return_left_out=True, **how)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(got_left, left)
    upstream = torch.rand_like(want)
    for one, other in zip(
        torch.autograd.grad(got, given, upstream), torch.autograd.grad(want, given, upstream), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_the_fused_layers_gradient_by_differences(reduction: str) -> None:
    hidden, weight, bias = layer(4, 3, 6)
    t, y = torch.randn(4, 6, dtype=torch.float64), torch.randint(0, 6, (4,))

    def loss(h: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return F.fused_linear_pld(h, w, t, y, b, chunk=3, reduction=reduction)

    assert torch.autograd.gradcheck(loss, (hidden, weight, bias))


def test_shapes_num_items_masks_and_what_needs_no_gradient() -> None:
    hidden, weight, _ = layer(6)
    t, y = torch.randn(2, 3, 13, dtype=torch.float64), torch.randint(0, 13, (2, 3))
    h = hidden.reshape(2, 3, 5)
    mask = torch.rand(2, 3) < 0.7
    how: dict[str, Any] = {"mask": mask, "num_items": torch.tensor(5.0)}
    want = F.pld(h @ weight.t(), t, y, **how)
    frozen = weight.detach()
    got = F.fused_linear_pld(h, frozen, t, y, **how)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(slope(got, hidden), slope(want, hidden))
    with torch.no_grad():
        torch.testing.assert_close(F.fused_linear_pld(h, weight, t, y, **how), want)


def test_nothing_counts() -> None:
    hidden, weight, _ = layer(4)
    t = torch.randn(4, 13, dtype=torch.float64)
    got = F.fused_linear_pld(hidden, weight, t, torch.full((4,), -100))
    got.backward()
    assert got == 0
    assert hidden.grad is not None
    assert not hidden.grad.any()


def test_half_precision_adds_the_weights_gradient_up_in_single() -> None:
    n, d, v = 128, 8, 40
    hidden, weight, _ = layer(n, d, v, torch.bfloat16)
    t, y = torch.randn(n, v), torch.randint(0, v, (n,))
    got = F.fused_linear_pld(hidden, weight, t, y, chunk=1, reduction="sum")
    _, found = torch.autograd.grad(got, (hidden, weight))
    with torch.no_grad():
        logits = torch.nn.functional.linear(hidden, weight)
    logits.requires_grad_()
    by_logits = slope(F.pld(logits, t, y, reduction="sum"), logits)
    want = by_logits.double().t() @ hidden.detach().double()
    off = (found.double() - want).norm() / want.norm()
    assert found.dtype == torch.bfloat16
    assert off < 0.004  # one rounding; 128 additions in half precision are off by 0.01 and more


class Largest(TorchDispatchMode):
    """The most elements that any tensor made inside has."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for x in out if isinstance(out, tuple | list) else (out,):
            if isinstance(x, Tensor):
                self.most = max(self.most, x.numel())
        return out


def test_no_tensor_is_as_large_as_the_logits() -> None:
    n, d, v = 64, 4, 100
    hidden, weight, _ = layer(n, d, v, torch.float32)
    y = torch.randint(0, v, (n,))
    teacher = LinearTeacher(torch.randn(n, 3), torch.randn(v, 3))
    with Largest() as spy:
        F.fused_linear_pld(hidden, weight, teacher, y, chunk=4).backward()
    assert spy.most < n * v / 4  # the sort's keys are two words a logit of a chunk
    with Largest() as spy:
        F.pld(hidden @ weight.t(), torch.randn(n, v), y).backward()
    assert spy.most >= n * v


@pytest.mark.parametrize("kind", ["logits", "sparse"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_one_graph_holds_the_fused_layer(kind: str, reduction: str) -> None:
    hidden, weight, bias = layer(7, 5, 13, torch.float32)
    y = torch.randint(0, 13, (7,))
    teacher, _, _ = teachers(7, 13, y)[kind]
    teacher = (
        teacher.float()
        if kind == "logits"
        else SparseTeacher(*(x if x.dtype == torch.int64 else x.float() for x in teacher))
    )

    def loss(h: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return F.fused_linear_pld(h * 1.0, w, teacher, y, b, chunk=3, reduction=reduction).sum()

    given = (hidden, weight, bias)
    want = loss(*given)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")(*given)
    torch.testing.assert_close(compiled, want)
    for one, other in zip(torch.autograd.grad(compiled, given), torch.autograd.grad(want, given), strict=True):
        torch.testing.assert_close(one, other)


def test_autocast_casts_the_layer() -> None:
    hidden, weight, _ = layer(7, 5, 13, torch.float32)
    t, y = torch.randn(7, 13), torch.randint(0, 13, (7,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = F.fused_linear_pld(hidden, weight, t, y)
        want = F.pld(torch.nn.functional.linear(hidden, weight), t, y)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(slope(got, weight), slope(want, weight), rtol=2e-2, atol=2e-2)


def test_a_second_derivative_is_refused() -> None:
    hidden, weight, _ = layer()
    loss = F.fused_linear_pld(hidden, weight, torch.randn(7, 13, dtype=torch.float64))
    (first,) = torch.autograd.grad(loss, hidden, create_graph=True)
    with pytest.raises(NotImplementedError, match="not differentiable a second time"):
        first.sum().backward()


def test_the_modules_are_the_functions() -> None:
    s, t, y = random_case(5, 12)
    kept = SparseTeacher.of(t, y, 3, temperature=2.0)
    held = plackett.SparsePLDLoss(temperature=2.0, reduction="sum")
    assert held(s, kept, y, num_items=3) == F.sparse_pld(s, kept, y, temperature=2.0, reduction="sum")
    hidden, weight, bias = layer(5, 5, 12)
    fused = plackett.FusedLinearPLDLoss(top_k=3, chunk=2)
    assert fused(hidden, weight, t, y, bias) == F.fused_linear_pld(hidden, weight, t, y, bias, top_k=3, chunk=2)
    with pytest.raises(InputError, match="did you mean 'chunk'"):
        plackett.FusedLinearPLDLoss(chunks=2)


H, W, T, Y = torch.zeros(2, 3), torch.zeros(5, 3), torch.zeros(2, 5), torch.zeros(2, dtype=torch.int64)
KEPT = SparseTeacher(torch.zeros(2, 1), torch.zeros(2, 1, dtype=torch.int64), torch.zeros(2), torch.zeros(2))
SENTENCES: list[tuple[Any, str]] = [
    (
        lambda: F.sparse_pld(T, T, Y),
        "sparse_pld: teacher must be a SparseTeacher, not Tensor; make one of logits with "
        "SparseTeacher.of(logits, target, k), or call pld.",
    ),
    (
        lambda: F.sparse_pld(T, KEPT._replace(label_logit=None), Y),
        "sparse_pld: there is a target, but the teacher has no label_logit; give its logit of every label, [2], since "
        "the label need not be among its K.",
    ),
    (
        lambda: F.sparse_pld(T, KEPT._replace(values=torch.zeros(3, 1)), Y),
        "sparse_pld: the teacher's values are [3, 1], the student's rows [2] of 5 classes; give the first K of every "
        "row, [..., K].",
    ),
    (
        lambda: F.sparse_pld(T, KEPT._replace(indices=torch.zeros(2, 1)), Y),
        "sparse_pld: the teacher's indices are [2, 1] of torch.float32; give one whole number a value, [2, 1].",
    ),
    (
        lambda: F.sparse_pld(T, KEPT._replace(indices=torch.full((2, 1), 7)), Y),
        "sparse_pld: the teacher's indices hold 7, but classes go from 0 to 4.",
    ),
    (
        lambda: F.sparse_pld(T, KEPT._replace(values=torch.zeros(2, 2), indices=torch.ones(2, 2).long()), Y),
        "sparse_pld: the teacher's indices name a class twice, in counted row 0; keep it once.",
    ),
    (
        lambda: F.sparse_pld(T, KEPT._replace(rest=torch.zeros(3)), Y),
        "sparse_pld: the teacher's rest is [3]; give one number a row, [2].",
    ),
    (
        lambda: F.sparse_pld(T, KEPT._replace(label_logit=torch.zeros(3)), Y),
        "sparse_pld: the teacher's label_logit is [3]; give one a row, [2].",
    ),
    (
        lambda: F.sparse_pld(T, KEPT, Y + 9),
        "sparse_pld: label 9 at [0] is out of range: there are 5 classes, so labels go from 0 to 4 (or -100, which is "
        "ignored).",
    ),
    (lambda: F.sparse_pld(T, KEPT, T), "sparse_pld takes integer labels, not torch.float32; for soft targets use pld."),
    (
        lambda: F.sparse_pld(T, KEPT, label_weight=1.0),
        "sparse_pld: label_weight raises the label's own choice, so it needs a target; target is None.",
    ),
    (
        lambda: F.fused_linear_pld(H, W.t(), T, Y),
        "fused_linear_pld: hidden is [2, 3] and weight [3, 5]; give [..., D] and [V, D], as nn.Linear keeps them.",
    ),
    (
        lambda: F.fused_linear_pld(H, W, T, Y, torch.zeros(3)),
        "fused_linear_pld: bias is [3]; give one number a class, [5].",
    ),
    (
        lambda: F.fused_linear_pld(H, W.half(), T, Y),
        "fused_linear_pld: hidden is torch.float32, weight torch.float16; give both in one float dtype, or call it "
        "under torch.autocast.",
    ),
    (
        lambda: F.fused_linear_pld(H, W, torch.zeros(2, 6), Y),
        "fused_linear_pld: the teacher's logits are [2, 6], the student's [2, 5]; they must be of the same tokens and "
        "the same vocabulary.",
    ),
    (
        lambda: F.fused_linear_pld(H, W, KEPT, Y, top_k=3),
        "fused_linear_pld: a sparse teacher has its own K, 1; leave out top_k.",
    ),
    (
        lambda: F.fused_linear_pld(H, W, T, Y, chunk=0),
        "fused_linear_pld: chunk must be a whole number, at least 1; not 0.",
    ),
    (
        lambda: F.fused_linear_pld(H, W, T, Y[:1]),
        "fused_linear_pld: target has shape [1], but needs one label a row, [2].",
    ),
    (
        lambda: F.fused_linear_pld(H, W, T, Y, reduction="men"),
        "fused_linear_pld: unknown reduction 'men'; did you mean 'mean'? (choices: mean, none, sum).",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES)
def test_every_mistake_is_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(InputError) as said:
        call()
    assert str(said.value) == sentence
