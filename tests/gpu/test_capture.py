"""Every loss beside PLD in a CUDA graph: no host synchronisation, no shape that depends on data, the eager numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from plackett import FitNetLoss, VIDLoss
from plackett import functional as F
from tests.gpu.captured import captured

pytestmark = pytest.mark.gpu

LOGITS, EMBEDDING, MAP = (128, 100), (128, 64), (128, 16, 8, 8)
CASES: dict[str, tuple[Callable[[], Callable[..., Tensor]], tuple[int, ...]]] = {
    "kd": (lambda: F.kd, LOGITS),
    "dist": (lambda: partial(F.dist, temperature=4.0), LOGITS),
    "dkd": (lambda: lambda s, t, **k: F.dkd(s, t, torch.arange(len(s), device=s.device) % 100, **k), LOGITS),
    "at": (lambda: F.at, MAP),
    "pkt": (lambda: F.pkt, EMBEDDING),
    "rkd": (lambda: F.rkd, EMBEDDING),
    "sp": (lambda: F.sp, MAP),
    "fitnet": (lambda: FitNetLoss(16, 16).cuda(), MAP),
    "vid": (lambda: VIDLoss(16, 16).cuda(), MAP),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_a_loss_is_captured(name: str, dtype: torch.dtype) -> None:
    make, shape = CASES[name]
    loss: Any = make()
    mask = torch.arange(shape[0], device="cuda") != 3
    s = torch.randn(shape, device="cuda", dtype=dtype, requires_grad=True)
    t = torch.randn(shape, device="cuda", dtype=dtype)

    def step() -> tuple[Tensor, Tensor]:
        value = loss(s, t, mask=mask)
        return value, torch.autograd.grad(value, s)[0]

    graph, held = captured(step)
    with torch.no_grad():
        s.normal_()
    graph.replay()
    eager = step()
    torch.testing.assert_close(held, eager, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_the_gpu_gives_the_cpus_numbers(name: str) -> None:
    make, shape = CASES[name]
    loss: Any = make()
    s, t = (torch.randn(shape, dtype=torch.float64) for _ in range(2))
    home: Any = loss.double() if isinstance(loss, torch.nn.Module) else loss
    found = home(s.cuda(), t.cuda()).cpu()
    expected = home.cpu()(s, t) if isinstance(home, torch.nn.Module) else home(s, t)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
