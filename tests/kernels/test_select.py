"""Which implementation is taken, in words."""

from __future__ import annotations

import pytest
import torch

from plackett import InputError, kernels
from plackett.kernels.fused import plan


def test_the_cpu_is_eager() -> None:
    assert kernels.why(torch.zeros(2, 3)).startswith("eager: the student's logits are on the CPU")


def test_kernels_by_name_need_a_device() -> None:
    if torch.cuda.is_available():
        return
    with pytest.raises(InputError, match="need a CUDA device"):
        kernels.pick("triton", torch.zeros(2, 3))


def test_an_unknown_name_is_a_sentence() -> None:
    with pytest.raises(InputError, match="did you mean 'triton'"):
        kernels.pick("tritn", torch.zeros(2, 3))


def test_what_takes_rows_of_a_size() -> None:
    assert plan(1000, None)[0] == "exact"
    assert plan(1000, 64)[0] == "exact"
    assert plan(4096, 64)[0] == "topk"
    assert plan(1000, 500)[0] == "exact"
    assert plan(152_064, 64)[0] == "topk"
    assert plan(8192, None)[0] == "exact"
    assert plan(8193, None)[0] == "long"
    assert plan(152_064, None)[0] == "long"
    assert plan(152_064, 1000)[0] == "long"
    kernel, why = plan(2_000_000, None)
    assert kernel == "eager"
    assert "2000000 classes" in why
    assert "top_k" in why
