"""PLD against its readable twin in float64, against the paper's listing, and against what the paper proves."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import plackett
from plackett import functional as F
from plackett import reference
from plackett.choice import likelihood
from plackett.losses.plackett_luce import eager_rows
from tests.cases import CASES, Case, double, gapped_case, random_case, tied_case, wide_case

OPTIONS: list[dict[str, Any]] = [
    {},
    {"temperature": 4.0},
    {"weights": "uniform"},
    {"weights": "position"},
    {"weights": "tensor"},
    {"label_weight": 0.5},
    {"top_k": 1},
    {"top_k": 5, "temperature": 2.0},
    {"top_k": 5, "weights": "position", "label_weight": 1.0},
    {"top_k": 5, "weights": "uniform"},
    {"top_k": 10_000},
]


def rank_weights(options: dict[str, Any], classes: int) -> dict[str, Any]:
    if options.get("weights") == "tensor":
        return options | {"weights": torch.linspace(1.0, 0.0, classes).square()}
    return options


def value_and_gradient(function: Any, case: Case, target: Tensor | None, **options: Any) -> tuple[Tensor, Tensor]:
    student = case.student.clone().requires_grad_()
    rows = function(student, case.teacher, target, reduction="none", **options)
    (gradient,) = torch.autograd.grad(rows.sum(), student)
    return rows.detach(), gradient


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("target", ["label", "none", "soft"])
def test_equals_the_reference_in_float64(kind: str, options: dict[str, Any], target: str) -> None:
    case = CASES[kind]()
    options = rank_weights(options, case.student.shape[-1])
    if target == "label":
        y: Tensor | None = case.target
    elif target == "none":
        y, options = None, {k: v for k, v in options.items() if k != "label_weight"}
    else:
        if kind == "gapped" and "label_weight" not in options:
            options = options | {"label_weight": 0.0}
        y = mixed_target(case, options)
    ours, ours_gradient = value_and_gradient(F.pld, case, y, **options)
    truth, truth_gradient = value_and_gradient(reference.pld, case, y, **options)
    torch.testing.assert_close(ours, truth, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(ours_gradient, truth_gradient, rtol=1e-9, atol=1e-12)


def mixed_target(case: Case, options: dict[str, Any]) -> Tensor:
    """Mixup of two labels with label smoothing."""
    classes = case.student.shape[-1]
    one = torch.nn.functional.one_hot(case.target, classes).double()
    other = one.roll(1, 0)
    return 0.9 * (0.7 * one + 0.3 * other) + 0.1 / classes


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", CASES)
def test_the_path_for_every_device_equals_the_reference(kind: str, options: dict[str, Any], monkeypatch: Any) -> None:
    """The log domain serves GPUs and tracing; here it serves every row."""
    monkeypatch.setattr(likelihood, "_linear_domain", likelihood._log_domain)
    case = CASES[kind]()
    options = rank_weights(options, case.student.shape[-1])
    for target in (case.target, None):
        if target is None:
            options = {k: v for k, v in options.items() if k != "label_weight"}
        ours, gradient = value_and_gradient(F.pld, case, target, **options)
        truth, truth_gradient = value_and_gradient(reference.pld, case, target, **options)
        torch.testing.assert_close(ours, truth, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(gradient, truth_gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("kind", CASES)
def test_low_precision_stays_within_its_own_rounding(kind: str, dtype: torch.dtype) -> None:
    case = CASES[kind](dtype=dtype)
    ours, gradient = value_and_gradient(F.pld, case, case.target)
    truth, truth_gradient = value_and_gradient(reference.pld, double(case), case.target)
    assert ours.dtype == torch.float32
    assert gradient.dtype == dtype
    torch.testing.assert_close(ours.double(), truth, rtol=4e-6, atol=1e-6)
    error = (gradient.double() - truth_gradient).norm() / truth_gradient.norm()
    assert error < max(torch.finfo(dtype).eps, 4e-6)


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_equals_the_papers_listing(temperature: float) -> None:
    case = random_case(64, 100)
    student = case.student.clone().requires_grad_()
    theirs = reference.published_pld(student, case.teacher, case.target, temperature)
    (their_gradient,) = torch.autograd.grad(theirs, student)
    ours = F.pld(student, case.teacher, case.target, temperature=temperature)
    (our_gradient,) = torch.autograd.grad(ours, student)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=0)
    torch.testing.assert_close(our_gradient, their_gradient, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("options", [*OPTIONS, {"target": None}], ids=str)
def test_gradient_against_finite_differences(options: dict[str, Any]) -> None:
    case = gapped_case(3, 6)
    options = rank_weights(options, 6)
    target = options.get("target", case.target)
    rest = {k: v for k, v in options.items() if k != "target"}
    student = case.student.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: F.pld(s, case.teacher, target, reduction="none", **rest), student)


def test_two_by_three_by_hand() -> None:
    """Row 1: pi = (0, 2, 1); softmax(3, 1, 2) = (0.665241, 0.090031, 0.244728).
        choice 1: log(e^2 + e^1 + e^0) - 2 = 2.407606 - 2 = 0.407606, x 0.665241 = 0.271156
        choice 2: log(e^0 + e^1) - 0 = 1.313262,                      x 0.244728 = 0.321392
        choice 3: 0                                                              sum 0.592548
    Row 2: label 2, teacher (1, 0, 0): pi = (2, 0, 1); softmax = (0.576117, 0.211942, 0.211942).
        choice 1: log(e^0 + e^1 + e^1) - 1 = 1.861995 - 1 = 0.861995, x 0.211942 = 0.182693
        choice 2: log(e^0 + e^1) - 0 = 1.313262,                      x 0.576117 = 0.756592
        choice 3: 0                                                              sum 0.939285
    """
    student = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 1.0]], dtype=torch.float64)
    teacher = torch.tensor([[3.0, 1.0, 2.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    rows = F.pld(student, teacher, torch.tensor([0, 2]), reduction="none")
    torch.testing.assert_close(rows, torch.tensor([0.592548, 0.939285], dtype=torch.float64), rtol=0, atol=1e-6)


def test_first_choice_alone_is_cross_entropy() -> None:
    case = random_case()
    first = torch.zeros(11, dtype=torch.float64)
    first[0] = 1
    ours = F.pld(case.student, case.teacher, case.target, weights=first)
    torch.testing.assert_close(ours, torch.nn.functional.cross_entropy(case.student, case.target))


def test_uniform_weights_are_listmle_over_c() -> None:
    case = random_case()
    nll = []
    for s, t, y in zip(case.student, case.teacher, case.target, strict=True):
        order = [int(y), *[int(c) for c in t.argsort(descending=True) if c != y]]
        nll.append(sum(torch.logsumexp(s[order[k:]], 0) - s[order[k]] for k in range(11)))
    expected = torch.stack(nll).mean() / 11  # type: ignore[arg-type]
    torch.testing.assert_close(F.pld(case.student, case.teacher, case.target, weights="uniform"), expected)
    torch.testing.assert_close(F.listmle(case.student, case.teacher, case.target), expected)


def test_position_weights_are_lans_normalised() -> None:
    case = random_case(classes=9)
    raw = torch.tensor([2.0 ** (9 - k) - 1 for k in range(1, 10)], dtype=torch.float64)
    expected = F.pld(case.student, case.teacher, case.target, weights=raw / raw.sum())
    torch.testing.assert_close(F.position_listmle(case.student, case.teacher, case.target), expected)


def test_position_weights_do_not_overflow_at_a_vocabulary() -> None:
    case = random_case(2, 5000, torch.float32)
    loss = F.pld(case.student, case.teacher, case.target, weights="position")
    assert torch.isfinite(loss)
    assert loss > 0


@given(shift=st.floats(-1e4, 1e4))
def test_invariant_under_translation_of_the_student(shift: float) -> None:
    case = random_case()
    moved = F.pld(case.student + shift, case.teacher, case.target)
    torch.testing.assert_close(moved, F.pld(case.student, case.teacher, case.target), rtol=1e-9, atol=1e-9)


@given(weight=st.floats(0.01, 0.99), seed=st.integers(0, 10_000), options=st.sampled_from(OPTIONS))
def test_convex_along_segments(weight: float, seed: int, options: dict[str, Any]) -> None:
    torch.manual_seed(seed)
    case, other = random_case(), random_case().student
    options = rank_weights(options, 11)

    def loss(student: Tensor) -> Tensor:
        return F.pld(student, case.teacher, case.target, reduction="none", **options)

    between = loss(weight * case.student + (1 - weight) * other)
    chord = weight * loss(case.student) + (1 - weight) * loss(other)
    assert torch.all(between <= chord + 1e-9)


@given(seed=st.integers(0, 10_000))
def test_permuting_the_classes_changes_nothing(seed: int) -> None:
    torch.manual_seed(seed)
    case = random_case()
    to = torch.randperm(11)
    moved = F.pld(case.student[:, to], case.teacher[:, to], to.argsort()[case.target])
    torch.testing.assert_close(moved, F.pld(case.student, case.teacher, case.target))


@pytest.mark.parametrize("classes", range(1, 7))
def test_probabilities_of_all_orders_sum_to_one(classes: int) -> None:
    """With weight 1 a choice, exp(-loss) is the probability of the order that the teacher's logits spell."""
    student = torch.randn(classes, dtype=torch.float64)
    orders = torch.tensor(list(itertools.permutations(range(classes))))
    teacher = torch.zeros(len(orders), classes, dtype=torch.float64)
    teacher.scatter_(-1, orders, -torch.arange(classes, dtype=torch.float64).expand_as(orders))
    ones = torch.ones(classes, dtype=torch.float64)
    rows = F.pld(student.expand_as(teacher), teacher, weights=ones, reduction="none")
    assert math.isclose(float((-rows).exp().sum()), 1.0, rel_tol=1e-12)


def test_ties_go_to_the_lower_class_index() -> None:
    student = torch.tensor([[0.0, 1.0, 2.0, 3.0]], dtype=torch.float64)
    tied = torch.zeros(1, 4, dtype=torch.float64)
    falling = torch.tensor([[0.3, 0.2, 0.1, 0.0]], dtype=torch.float64)
    for y, weights in itertools.product((torch.tensor([2]), None), ("uniform", "position")):
        ours = F.pld(student, tied, y, weights=weights)
        torch.testing.assert_close(ours, F.pld(student, falling, y, weights=weights))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_the_order_of_ties_is_the_same_in_every_dtype_and_domain(dtype: torch.dtype) -> None:
    case = tied_case(5, 64)
    teacher = case.teacher.to(dtype)
    truth = reference.pld(case.student, case.teacher, case.target, reduction="none")
    ours = F.pld(case.student, teacher, case.target, reduction="none")
    torch.testing.assert_close(ours, truth, rtol=1e-9, atol=1e-9)


def test_label_on_the_teachers_last_class() -> None:
    student = torch.tensor([[0.5, -1.0, 2.0]], dtype=torch.float64)
    teacher = torch.tensor([[3.0, 2.0, -1.0]], dtype=torch.float64)
    q = torch.softmax(teacher[0], 0)
    s = student[0]
    lse = torch.logsumexp
    by_hand = q[2] * (lse(s, 0) - s[2]) + q[0] * (lse(s[:2], 0) - s[0]) + q[1] * 0
    torch.testing.assert_close(F.pld(student, teacher, torch.tensor([2])), by_hand)


@pytest.mark.parametrize("weights", ["teacher", "uniform", "position"])
def test_one_class_costs_nothing(weights: str) -> None:
    student = torch.tensor([[3.0], [-2.0]], requires_grad=True)
    loss = F.pld(student, torch.zeros(2, 1), torch.tensor([0, 0]), weights=weights)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(student.grad, torch.zeros(2, 1))


def test_two_classes_are_weighted_cross_entropy() -> None:
    case = random_case(classes=2)
    q = torch.softmax(case.teacher, -1).gather(-1, case.target[:, None]).squeeze(-1)
    expected = q * torch.nn.functional.cross_entropy(case.student, case.target, reduction="none")
    torch.testing.assert_close(F.pld(case.student, case.teacher, case.target, reduction="none"), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("offset", [-1e4, 1e4])
@pytest.mark.parametrize("span", [1.0, 60.0, 80.0, 200.0, 2e4])
def test_extreme_logits(offset: float, span: float, dtype: torch.dtype) -> None:
    case = wide_case(9, 40, dtype, span)
    case = case._replace(student=case.student + offset, teacher=case.teacher + offset)
    ours, gradient = value_and_gradient(F.pld, case, case.target)
    truth, truth_gradient = value_and_gradient(reference.pld, double(case), case.target)
    tolerance = 1e-10 if dtype == torch.float64 else 3e-6
    torch.testing.assert_close(ours.double(), truth, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(gradient.double(), truth_gradient, rtol=tolerance, atol=tolerance)


def test_a_nearly_right_student_keeps_its_gradient() -> None:
    """A tail of mass 2e-6 can carry most of such a row's gradient; none of it may be dropped."""
    teacher = torch.cat([torch.tensor([14.0]), torch.linspace(0.9, 0.0, 999)])[None]
    student = torch.cat([torch.tensor([20.0]), torch.randn(999)])[None]
    case = Case(student, teacher, torch.tensor([0]))
    _, gradient = value_and_gradient(F.pld, case, case.target)
    _, truth = value_and_gradient(reference.pld, double(case), case.target)
    assert (gradient.double() - truth).norm() / truth.norm() < 1e-6


def test_a_label_that_the_teacher_does_not_offer() -> None:
    student = torch.tensor([[1.0, 0.0, -1.0, 0.5]], dtype=torch.float64)
    teacher = torch.tensor([[2.0, -math.inf, 1.0, -math.inf]], dtype=torch.float64)
    q = torch.softmax(torch.tensor([2.0, 1.0], dtype=torch.float64), 0)
    s, lse = student[0], torch.logsumexp
    # Label 1: chosen among all four. Then the teacher's choices, 0 and 2, among themselves.
    by_hand = 0.5 * (lse(s, 0) - s[1]) + q[0] * (lse(s[[0, 2]], 0) - s[0])
    torch.testing.assert_close(F.pld(student, teacher, torch.tensor([1]), label_weight=0.5), by_hand)


def test_unoffered_classes_feel_the_label_only() -> None:
    case = gapped_case()
    barred = case.teacher == -torch.inf
    _, gradient = value_and_gradient(F.pld, case, None)
    assert torch.all(gradient[barred] == 0)
    _, gradient = value_and_gradient(F.pld, case, case.target)
    q = torch.softmax(case.teacher, -1).gather(-1, case.target[:, None])
    expected = q * torch.softmax(case.student, -1)
    torch.testing.assert_close(gradient[barred], expected[barred])


def test_padded_vocabulary_barred_on_both_sides() -> None:
    case = random_case(5, 12)
    padding = torch.full((5, 3), -torch.inf, dtype=torch.float64)
    padded = Case(torch.cat([case.student, padding], -1), torch.cat([case.teacher, padding], -1), case.target)
    ours, gradient = value_and_gradient(F.pld, padded, padded.target)
    truth, truth_gradient = value_and_gradient(F.pld, case, case.target)
    torch.testing.assert_close(ours, truth)
    torch.testing.assert_close(gradient, torch.nn.functional.pad(truth_gradient, (0, 3)))


def test_soft_target_is_an_expectation_over_labels() -> None:
    case = random_case(classes=6)
    p = torch.softmax(torch.randn(7, 6, dtype=torch.float64), -1)
    floor = p.amin(-1)
    expected = 6 * floor * F.pld(case.student, case.teacher, reduction="none")
    for j in range(6):
        label = torch.full((7,), j)
        expected += (p[:, j] - floor) * F.pld(case.student, case.teacher, label, reduction="none")
    torch.testing.assert_close(F.pld(case.student, case.teacher, p, reduction="none"), expected)


def test_one_hot_soft_target_is_the_label() -> None:
    case = random_case()
    p = torch.nn.functional.one_hot(case.target, 11).double()
    torch.testing.assert_close(
        F.pld(case.student, case.teacher, p), F.pld(case.student, case.teacher, case.target), rtol=1e-12, atol=0
    )


def test_top_k_of_all_classes_is_exact_and_leaves_nothing_out() -> None:
    case = random_case(dtype=torch.float32)
    exact, gradient = value_and_gradient(F.pld, case, case.target)
    for k in (11, 12, 500):
        loss, k_gradient = value_and_gradient(F.pld, case, case.target, top_k=k)
        torch.testing.assert_close(loss, exact)
        torch.testing.assert_close(k_gradient, gradient)
    _, left_out = F.pld(case.student, case.teacher, case.target, top_k=11, return_left_out=True)
    assert torch.equal(left_out, torch.zeros(7))


def test_left_out_is_the_mass_of_the_choices_not_charged() -> None:
    case = random_case()
    loss, left_out = F.pld(case.student, case.teacher, case.target, top_k=3, return_left_out=True, reduction="none")
    assert loss.shape == left_out.shape == (7,)
    q = torch.softmax(case.teacher, -1)
    others = q.scatter(-1, case.target[:, None], -1.0).sort(-1, descending=True).values
    torch.testing.assert_close(left_out, 1 - q.gather(-1, case.target[:, None])[:, 0] - others[:, :2].sum(-1))


def test_ignored_rows_count_nowhere() -> None:
    case = random_case(6, 9)
    target = case.target.clone()
    target[[1, 4]] = -100
    student = case.student.clone()
    student[1] = torch.nan
    student.requires_grad_()
    loss = F.pld(student, case.teacher, target)
    loss.backward()
    keep = [0, 2, 3, 5]
    torch.testing.assert_close(loss, F.pld(case.student[keep], case.teacher[keep], case.target[keep]))
    assert torch.all(student.grad[[1, 4]] == 0)
    masked = F.pld(student, case.teacher, case.target, mask=target != -100)
    torch.testing.assert_close(masked, loss)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_all_ignored_is_a_zero_with_a_graph(reduction: str) -> None:
    student = torch.randn(4, 5, requires_grad=True)
    loss = F.pld(student, torch.randn(4, 5), torch.full((4,), -100), reduction=reduction)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(student.grad, torch.zeros(4, 5))


def test_soft_targets_of_which_none_count_are_a_zero_with_a_graph() -> None:
    student = torch.randn(4, 5, requires_grad=True)
    p = torch.full((4, 5), 0.2)
    F.pld(student, torch.randn(4, 5), p, mask=torch.zeros(4, dtype=torch.bool)).backward()
    F.pld(student[:0], torch.randn(0, 5), p[:0]).backward()
    assert torch.equal(student.grad, torch.zeros(4, 5))


def test_no_rows_at_all() -> None:
    student = torch.zeros(0, 5, requires_grad=True)
    loss = F.pld(student, torch.zeros(0, 5), torch.zeros(0, dtype=torch.long))
    loss.backward()
    assert loss.item() == 0


def test_non_contiguous_and_expanded_inputs() -> None:
    case = random_case(6, 10)
    expected, gradient = value_and_gradient(F.pld, case, case.target)
    turned = Case(case.student.t().contiguous().t(), case.teacher.t().contiguous().t(), case.target)
    ours, turned_gradient = value_and_gradient(F.pld, turned, turned.target)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(turned_gradient, gradient)
    one = F.pld(case.student[:1].expand(6, 10), case.teacher[:1].expand(6, 10), case.target[:1].expand(6))
    torch.testing.assert_close(one, expected[0])


def test_leading_dimensions() -> None:
    case = random_case(12, 5)
    flat = F.pld(case.student, case.teacher, case.target, reduction="none")
    shaped = F.pld(case.student.view(3, 4, 5), case.teacher.view(3, 4, 5), case.target.view(3, 4), reduction="none")
    torch.testing.assert_close(shaped, flat.view(3, 4))
    single = F.pld(case.student[0], case.teacher[0], case.target[0])
    torch.testing.assert_close(single, flat[0])


def test_rows_in_blocks_equal_rows_at_once(monkeypatch: Any) -> None:
    case = random_case(50, 30, torch.float32)
    whole = value_and_gradient(F.pld, case, case.target)
    monkeypatch.setattr("plackett.losses.plackett_luce._BLOCK", {"cpu": 200})
    assert torch.equal(value_and_gradient(F.pld, case, case.target)[0], whole[0])
    assert torch.equal(value_and_gradient(F.pld, case, case.target)[1], whole[1])


def test_loss_is_not_the_last_node() -> None:
    case = random_case()
    student = case.student.clone().requires_grad_()
    (2 * F.pld(student, case.teacher, case.target) ** 2).backward()
    value = F.pld(case.student, case.teacher, case.target)
    other = case.student.clone().requires_grad_()
    reference.pld(other, case.teacher, case.target).backward()
    torch.testing.assert_close(student.grad, 4 * value * other.grad)


def test_backward_twice_through_a_retained_graph() -> None:
    case = random_case()
    student = case.student.clone().requires_grad_()
    loss = F.pld(student, case.teacher, case.target)
    loss.backward(retain_graph=True)
    once = student.grad.clone()
    loss.backward()
    torch.testing.assert_close(student.grad, 2 * once)


def penalised(case: Case) -> object:
    weight = torch.eye(11, dtype=torch.float64, requires_grad=True)
    loss = F.pld(case.student @ weight, case.teacher, case.target)
    (gradient,) = torch.autograd.grad(loss, weight, create_graph=True)
    return torch.autograd.grad(loss + gradient.square().sum(), weight)


def accumulated(case: Case) -> object:
    student = case.student.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(F.pld(student, case.teacher, case.target), student, create_graph=True)
    return gradient.sum().backward()


def loss_of(case: Case) -> Any:
    return lambda student: F.pld(student, case.teacher, case.target)


SECOND = {
    "backward": accumulated,
    "penalty": penalised,
    "hessian": lambda case: torch.autograd.functional.hessian(loss_of(case), case.student),
    "hvp": lambda case: torch.autograd.functional.hvp(loss_of(case), case.student, case.student),
    "grad of grad": lambda case: torch.func.grad(lambda s: torch.func.grad(loss_of(case))(s).square().sum())(
        case.student
    ),
    "jacrev of jacrev": lambda case: torch.func.jacrev(torch.func.jacrev(loss_of(case)))(case.student),
}


@pytest.mark.parametrize("way", SECOND)
def test_second_derivatives_are_refused_with_a_way_out(way: str) -> None:
    with pytest.raises(NotImplementedError, match=r"plackett\.reference\.pld"):
        SECOND[way](random_case())


def test_the_reference_has_second_derivatives() -> None:
    case = random_case()
    hessian = torch.autograd.functional.hessian(
        lambda s: reference.pld(s, case.teacher[:1], case.target[:1]), case.student[:1]
    ).squeeze()
    assert torch.linalg.eigvalsh(hessian).min() > -1e-12  # convex


def test_forward_mode() -> None:
    case = random_case()
    direction = torch.randn_like(case.student)
    _, tangent = torch.func.jvp(loss_of(case), (case.student,), (direction,))
    _, gradient = value_and_gradient(F.pld, case, case.target)
    torch.testing.assert_close(tangent, (gradient * direction).sum() / 7)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(case.student, direction)
        value = torch.autograd.forward_ad.unpack_dual(loss_of(case)(dual))
    torch.testing.assert_close(value.tangent, tangent)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_under_vmap_with_a_gradient_a_sample(dtype: torch.dtype) -> None:
    case = random_case(dtype=dtype)
    _, gradient = value_and_gradient(F.pld, case, case.target)
    values = torch.func.vmap(F.pld)(*case)
    torch.testing.assert_close(values, F.pld(*case, reduction="none"))
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(F.pld))(*case), gradient)


def test_a_broken_teacher_shows(monkeypatch: Any) -> None:
    """Where nobody looks at the data, NaN must come through: a loss of 0 would look like success."""
    monkeypatch.setattr(plackett.checks, "may_look", lambda *tensors: False)
    case = random_case()
    teacher = case.teacher.clone()
    teacher[2, 3] = torch.nan
    for target in (case.target, None, torch.eye(11, dtype=torch.float64)[case.target]):
        rows = F.pld(case.student, teacher, target, reduction="none")
        assert rows.isnan().tolist() == [i == 2 for i in range(7)]


def test_a_student_that_excludes_an_offered_class() -> None:
    student = torch.tensor([[1.0, -math.inf, 0.5]], dtype=torch.float64)
    teacher = torch.tensor([[2.0, 1.0, 0.0]], dtype=torch.float64)
    assert F.pld(student, teacher, torch.tensor([0])) == math.inf
    last = torch.tensor([[1.0, 0.5, -math.inf]], dtype=torch.float64)  # the last pick is certain whatever it costs
    assert torch.isfinite(F.pld(last, teacher, torch.tensor([0])))


def test_labels_of_every_integer_dtype_and_a_target_that_wants_a_gradient() -> None:
    case = random_case()
    expected = F.pld(*case)
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.uint64):
        assert torch.equal(F.pld(case.student, case.teacher, case.target.to(dtype)), expected)
    soft = torch.softmax(case.teacher, -1)
    for function in (lambda s, p: F.pld(s, case.teacher, p, max_labels=11), F.cross_entropy):
        student, wanting = case.student.clone().requires_grad_(), soft.clone().requires_grad_()
        function(student, wanting).backward()
        assert student.grad is not None
        assert wanting.grad is None


def test_a_teacher_from_inference_mode() -> None:
    case = random_case()
    with torch.inference_mode():
        teacher = case.teacher.clone()
    student = case.student.clone().requires_grad_()
    F.pld(student, teacher, case.target).backward()
    _, gradient = value_and_gradient(F.pld, case, case.target)
    torch.testing.assert_close(student.grad, gradient / 7)


def test_the_teacher_is_a_constant() -> None:
    case = random_case()
    teacher = case.teacher.clone().requires_grad_()
    student = case.student.clone().requires_grad_()
    F.pld(student, teacher, case.target).backward()
    assert teacher.grad is None


def test_no_gradient_is_computed_for_nobody() -> None:
    case = random_case()
    asked: list[bool] = []

    def spy(*args: Any, **options: Any) -> Any:
        asked.append(options["gradient"])
        return eager_rows(*args, **options)

    with torch.no_grad():
        F.pld(case.student.clone().requires_grad_(), case.teacher, case.target, impl=spy)
    F.pld(case.student, case.teacher, case.target, impl=spy)
    F.pld(case.student.clone().requires_grad_(), case.teacher, case.target, impl=spy)
    assert asked == [False, False, True]


def test_num_items_makes_accumulation_equal_the_whole_batch() -> None:
    case = random_case(10, 7)
    target = case.target.clone()
    target[3] = -100
    whole = F.pld(case.student, case.teacher, target)
    parts = [F.pld(case.student[r], case.teacher[r], target[r], num_items=9) for r in (slice(0, 4), slice(4, 10))]
    torch.testing.assert_close(sum(parts), whole)


def test_inputs_are_left_as_they_were() -> None:
    case = random_case(dtype=torch.float32)
    copies = [t.clone() for t in case]
    student = case.student.requires_grad_()
    F.pld(student, case.teacher, case.target).backward()
    assert all(torch.equal(a.detach(), b) for a, b in zip(case, copies, strict=True))


def test_under_vmap_over_teachers_or_masks_alone() -> None:
    """What is mapped over may be any of the tensors: nobody looks at data that is not there."""
    case = random_case(4, 5)
    other = gapped_case(4, 5).teacher.scatter(-1, case.target[:, None], 0.0)
    both = torch.stack([case.teacher, other])
    ours = torch.func.vmap(lambda t: F.pld(case.student, t, case.target))(both)
    torch.testing.assert_close(ours, torch.stack([F.pld(case.student, t, case.target) for t in both]))
    masks = torch.tensor([[True, True, False, False], [True, True, True, True]])
    ours = torch.func.vmap(lambda m: F.pld(case.student, other, case.target, mask=m))(masks)
    torch.testing.assert_close(ours, torch.stack([F.pld(case.student, other, case.target, mask=m) for m in masks]))


def test_another_default_device_is_not_ours() -> None:
    case = random_case(dtype=torch.float32)
    expected = F.pld(*case)
    try:
        torch.set_default_device("meta")
        ours = F.pld(*case)
    finally:
        torch.set_default_device(None)
    assert torch.equal(ours, expected)


class Exported(torch.nn.Module):
    def forward(self, student: Tensor, teacher: Tensor, target: Tensor) -> Tensor:
        loss = F.pld(student, teacher, target, temperature=2.0)
        assert isinstance(loss, Tensor)
        return loss


def test_under_torch_export_with_any_number_of_rows() -> None:
    case, other = random_case(4, 7, torch.float32), random_case(9, 7, torch.float32)
    rows = {0: torch.export.Dim("rows")}
    program = torch.export.export(Exported(), tuple(case), dynamic_shapes=(rows, rows, rows))
    torch.testing.assert_close(program.module()(*other), F.pld(*other, temperature=2.0))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_under_torch_compile_in_every_dtype(dtype: torch.dtype) -> None:
    case = random_case(8, 12, dtype)
    step = torch.compile(F.pld, fullgraph=True, backend="aot_eager")
    ours, plain = case.student.clone().requires_grad_(), case.student.clone().requires_grad_()
    step(ours, case.teacher, case.target).backward()
    F.pld(plain, case.teacher, case.target).backward()
    assert ours.grad.dtype == dtype
    torch.testing.assert_close(ours.grad, plain.grad)


@pytest.mark.parametrize("inside", [True, False], ids=["autocast inside", "autocast outside"])
def test_under_torch_compile_and_autocast(inside: bool) -> None:
    case = random_case(8, 16, torch.float32)
    linear = torch.nn.Linear(16, 16)

    def step(x: Tensor) -> Tensor:
        return F.pld(linear(x), case.teacher, case.target)

    def step_inside(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return step(x)

    gradients = []
    compiled = torch.compile(step_inside if inside else step, fullgraph=True, backend="aot_eager")
    for run in (step, compiled):
        linear.weight.grad = None
        with contextlib.nullcontext() if inside and run is compiled else torch.autocast("cpu", torch.bfloat16):
            loss = run(case.student)
        loss.backward()
        gradients.append(linear.weight.grad)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("target", ["label", "none", "soft"])
def test_under_torch_compile(target: str) -> None:
    case = tied_case(8, 12, torch.float32)
    y = {"label": case.target, "none": None, "soft": torch.eye(12)[case.target] * 0.9 + 0.1 / 12}[target]

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(student: Tensor) -> Tensor:
        return 3 * plackett.functional.pld(student, case.teacher, y, temperature=2.0)

    ours, plain = case.student.clone().requires_grad_(), case.student.clone().requires_grad_()
    value = step(ours)
    value.backward()
    expected = 3 * F.pld(plain, case.teacher, y, temperature=2.0)
    expected.backward()
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(ours.grad, plain.grad)


def test_under_torch_compile_with_shapes_that_change() -> None:
    loss = torch.compile(plackett.modules.PLDLoss(temperature=4.0, label_weight=0.5), fullgraph=True, dynamic=True,
                         backend="aot_eager")  # fmt: skip
    objective = torch.compile(
        plackett.Objective({"ce": 0.1, "kd": {"weight": 0.9, "temperature": 2.0}, "dist": {"beta": 2.0}}),
        fullgraph=True, dynamic=True, backend="aot_eager",
    )  # fmt: skip
    for rows, classes in ((8, 12), (5, 12), (6, 7)):
        case = random_case(rows, classes, torch.float32)
        student = case.student.clone().requires_grad_()
        torch.testing.assert_close(
            loss(student, case.teacher, case.target), F.pld(*case, temperature=4.0, label_weight=0.5)
        )
        objective(student, case.teacher, case.target).total.backward()
        assert torch.isfinite(student.grad).all()


def test_under_torch_compile_with_a_temperature_that_changes() -> None:
    case = random_case(6, 7, torch.float32)
    step = torch.compile(lambda s, tau: F.pld(s, case.teacher, case.target, temperature=tau), fullgraph=True,
                         backend="aot_eager")  # fmt: skip
    for tau in (1.0, 2.0, 3.5):
        torch.testing.assert_close(step(case.student, tau), F.pld(*case, temperature=tau))


@pytest.mark.slow
def test_under_inductor_with_the_module() -> None:
    case = random_case(8, 12, torch.float32)
    loss = torch.compile(plackett.modules.PLDLoss(temperature=2.0), fullgraph=True)
    ours = case.student.clone().requires_grad_()
    value = loss(ours, case.teacher, case.target)
    value.backward()
    expected, gradient = value_and_gradient(F.pld, case, case.target, temperature=2.0)
    torch.testing.assert_close(value, expected.mean())
    torch.testing.assert_close(ours.grad, gradient / 8)


def test_under_autocast() -> None:
    case = random_case(8, 16, torch.float32)
    linear = torch.nn.Linear(16, 16)
    with torch.autocast("cpu", torch.bfloat16):
        logits = linear(case.student)
        loss = F.pld(logits, case.teacher, case.target)
    loss.backward()
    assert logits.dtype == torch.bfloat16
    assert loss.dtype == torch.float32
    expected = reference.pld(logits.detach().double(), case.teacher.double(), case.target)
    torch.testing.assert_close(loss.detach().double(), expected, rtol=1e-5, atol=1e-6)
    assert torch.isfinite(linear.weight.grad).all()


def test_under_torch_func() -> None:
    case = random_case()
    by_func = torch.func.grad(lambda s: F.pld(s, case.teacher, case.target))(case.student)
    _, gradient = value_and_gradient(F.pld, case, case.target)
    torch.testing.assert_close(by_func, gradient / 7)
