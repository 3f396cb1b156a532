"""Networks by name."""

from __future__ import annotations

import pytest
import torch

from plackett import models
from plackett.errors import InputError


def test_the_demos_networks_have_the_sizes_that_are_said_of_them() -> None:
    teacher, student = (models.create(name, classes=10) for name in ("mlp_teacher", "mlp_student"))
    assert (models.parameters(teacher), models.parameters(student)) == (301_066, 2_410)
    assert student(torch.zeros(3, 1, 8, 8)).shape == (3, 10)


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match="did you mean 'mlp_teacher'"):
        models.create("mlp_techer", classes=10)


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="Two models are named 'mlp_student'"):
        models.register(models.mlp.mlp_student)
