"""A live teacher is frozen, answers in float32, and leaves the network that it was made from alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from plackett.data import Batch
from plackett.errors import InputError
from plackett.teachers import LiveTeacher, first_choice_weight


def network() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))


def batch(n: int = 5) -> Batch:
    return Batch(torch.randn(n, 1, 2, 2), torch.zeros(n, dtype=torch.long), torch.arange(n), 0)


def test_a_teacher_is_frozen_and_the_network_is_not() -> None:
    original = network().train()
    teacher = LiveTeacher(original, 3)
    signals = teacher.signals(batch())
    assert not signals.logits.requires_grad
    assert not any(p.requires_grad for p in teacher.network.parameters())
    assert original.training
    assert all(p.requires_grad for p in original.parameters())
    assert type(original[3]) is nn.Linear
    original[3].weight.data.zero_()
    assert teacher.network[3].weight.abs().sum() > 0


def test_it_answers_the_same_twice_in_evaluation_mode() -> None:
    teacher, given = LiveTeacher(network(), 3), batch()
    assert torch.equal(teacher.signals(given).logits, teacher.signals(given).logits)


def test_the_last_layer_is_float32_under_autocast() -> None:
    """As the mathematics says: bf16 before, float32 in the last layer, so no ties appear among the logits."""
    torch.manual_seed(0)
    wide = nn.Sequential(nn.Flatten(), nn.Linear(4, 16), nn.Linear(16, 1000))
    teacher, given = LiveTeacher(wide, 1000), batch(8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits, rounded = teacher.signals(given).logits, wide(given.inputs)
    assert logits.dtype == torch.float32
    ties = [1000 - len(row.unique()) for row in rounded]
    assert min(ties) > 100
    assert max(1000 - len(row.unique()) for row in logits) < 10


def test_a_class_count_that_differs_gets_a_sentence() -> None:
    with pytest.raises(InputError, match="The teacher gives 3 logits a picture, but the data has 5 classes"):
        LiveTeacher(network(), 5).signals(batch())


def test_first_choice_weight_by_hand() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 2.0]]).log().clamp(min=-1e9)  # softmax: (1, 0), (0, 1)
    weights = first_choice_weight(logits, torch.tensor([0, 0]), [1.0])
    assert weights[1.0] == pytest.approx(0.5)
    logits = torch.tensor([[3.0, 1.0]]).log()
    weights = first_choice_weight(logits, torch.tensor([0]), [1.0, 0.5])
    assert weights[1.0] == pytest.approx(3 / 4)
    assert weights[0.5] == pytest.approx(9 / 10)
    with pytest.raises(InputError, match="must be above 0; got 0"):
        first_choice_weight(logits, torch.tensor([0]), [0.0])
