"""Plain numbers, checked by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from plackett.data import Pictures
from plackett.errors import InputError
from plackett.evaluation import accuracy, agreement, calibration, predict

# First classes 0, 1, 1, 2; second classes 1, 0, 2, 1.
LOGITS = torch.tensor([[3.0, 2.0, 1.0], [1.0, 2.0, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 2.0]])


def test_accuracy_by_hand() -> None:
    targets = torch.tensor([0, 0, 1, 0])  # right, second, right, third
    assert accuracy(LOGITS, targets) == 0.5
    assert accuracy(LOGITS, targets, k=2) == 0.75
    assert accuracy(LOGITS, targets, k=3) == 1.0


def test_agreement_by_hand() -> None:
    assert agreement(LOGITS, LOGITS[[0, 0, 2, 3]]) == 0.75
    assert agreement(LOGITS, LOGITS) == 1.0


def test_calibration_by_hand() -> None:
    """Confidences 0.9, 0.9, 0.6 and one right in the upper bin: |0.9 - 1/2| * 2/3 + |0.6 - 1| * 1/3 = 0.4."""
    logits = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]]).log()
    found = calibration(logits, torch.tensor([0, 1, 1]), bins=4)
    assert found.ece == pytest.approx(0.4)
    assert found.counts == [0, 0, 1, 2]
    assert found.confidence[3] == pytest.approx(0.9)
    assert found.accuracy == [None, None, 1.0, 0.5]


def test_full_confidence_falls_into_the_last_bin() -> None:
    found = calibration(torch.tensor([[1000.0, 0.0]]), torch.tensor([0]))
    assert found.counts == [0] * 9 + [1]
    assert found.ece == 0.0


def test_prediction_is_in_evaluation_mode_and_restores_the_mode() -> None:
    pictures = Pictures(torch.randn(5, 1, 2, 2), torch.zeros(5, dtype=torch.long), ("a", "b"))
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 2), nn.Dropout(0.9)).train()
    one, other = predict(network, pictures, batch_size=2), predict(network, pictures)
    assert torch.allclose(one, other)
    assert not one.requires_grad
    assert network.training


def test_mistakes_get_a_sentence() -> None:
    with pytest.raises(InputError, match="4 predictions for 3 pictures"):
        accuracy(LOGITS, torch.tensor([0, 1, 2]))
    with pytest.raises(InputError, match="Top-4 accuracy of 3 classes does not exist"):
        accuracy(LOGITS, torch.tensor([0, 1, 2, 0]), k=4)
    with pytest.raises(InputError, match="Cannot bin 4 predictions for 0 pictures into 10 bins"):
        calibration(LOGITS, torch.tensor([], dtype=torch.long))
