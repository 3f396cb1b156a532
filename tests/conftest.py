"""What every test shares: generators of logits that look like the ones people have."""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import settings

from tests import cifar as slices

# Two test processes on two cores would otherwise each start a thread a core for tensors of a few hundred numbers.
torch.set_num_threads(1 if "PYTEST_XDIST_WORKER" in os.environ else min(2, os.cpu_count() or 1))
settings.register_profile("plackett", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("plackett")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(20251118)


@pytest.fixture(scope="session", params=[slices.KIND], ids=[slices.KIND.split()[0]])
def cifar(tmp_path_factory: pytest.TempPathFactory) -> slices.Cifar:
    """A few pictures of every class of CIFAR-100, real where it is at hand, in the official binary layout."""
    return slices.make(tmp_path_factory.mktemp("cifar"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"CIFAR-100 in these tests: {slices.KIND}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device, and this machine has none"))
