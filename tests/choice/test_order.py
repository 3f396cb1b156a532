"""The packed sort and the stable sort give one order."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from plackett.choice import choice_weights, order, teacher_order
from plackett.reference import plackett_luce as reference

SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, 3.4e38, -3.4e38, -float("inf"), 0.1, 0.30000001]


@given(
    rows=st.lists(st.lists(st.sampled_from(SPECIAL), min_size=9, max_size=9), min_size=1, max_size=5),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    first=st.integers(1, 12),
    data=st.data(),
)
def test_packed_order_is_the_stable_order(rows: list[list[float]], dtype: torch.dtype, first: int, data: Any) -> None:
    teacher = torch.tensor(rows).to(dtype)
    labels = data.draw(st.lists(st.integers(0, 8), min_size=len(rows), max_size=len(rows)))
    for target in (None, torch.tensor(labels)):
        assert order._can_pack(teacher)
        packed = teacher_order(teacher, target, first)
        expected = reference.order(teacher.double(), target)[:, :first]
        assert torch.equal(packed, expected)


def test_float64_keeps_differences_that_float32_would_lose() -> None:
    teacher = torch.tensor([[1.0, 1.0 + 1e-12, 1.0 - 1e-12]], dtype=torch.float64)
    assert not order._can_pack(teacher)
    assert teacher_order(teacher).tolist() == [[1, 0, 2]]


def test_the_teacher_is_left_as_it_was() -> None:
    teacher = torch.randn(4, 9)
    before = teacher.clone()
    teacher_order(teacher, torch.tensor([0, 1, 2, 3]), 3)
    assert torch.equal(teacher, before)


@pytest.mark.parametrize("weights", ["teacher", "uniform", "position"])
@pytest.mark.parametrize("classes", [1, 2, 3, 7, 1000])
def test_weights_sum_to_one_with_what_is_left_out(weights: str, classes: int) -> None:
    teacher = torch.randn(5, classes, dtype=torch.float64)
    target = torch.randint(0, classes, (5,))
    for first in (1, 2, classes):
        pi = teacher_order(teacher, target, first)
        a, left_out = choice_weights(teacher, pi, labelled=True, weights=weights)
        torch.testing.assert_close(a.sum(-1) + left_out, torch.ones(5, dtype=torch.float64))


@pytest.mark.parametrize("weights", ["teacher", "uniform", "position"])
@pytest.mark.parametrize("labelled", [True, False])
def test_weights_equal_the_references(weights: str, labelled: bool) -> None:
    teacher = torch.randn(40, 6, dtype=torch.float64).masked_fill(torch.rand(40, 6) < 0.4, -torch.inf)
    teacher[:, 0] = 0.5
    target = torch.randint(0, 6, (40,)) if labelled else None
    pi = teacher_order(teacher, target)
    label_weight = 0.25 if labelled else None
    offered = teacher > -torch.inf
    ours = choice_weights(
        teacher, pi, offered, labelled=labelled, weights=weights, temperature=2.0, label_weight=label_weight
    )
    theirs = reference.choice_weights(teacher, pi, labelled, 2.0, weights, label_weight)
    torch.testing.assert_close(ours.a, theirs)
