"""The cohort engine on a GPU: a graph takes the eager steps, waits for nobody, stops who breaks, and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from plackett import models
from plackett.data import ResidentBatches
from plackett.objectives import Objective
from plackett.teachers import LiveTeacher
from plackett.training import Checkpoints, Cohort, EpochReport, Mode, Recipe, Student
from plackett.training.graphed import Graphed
from tests.gpu.captured import no_synchronisation
from tests.training import small

pytestmark = pytest.mark.gpu

GRAPH = Mode(graph=True, streams=True)


@pytest.fixture(autouse=True)
def _repeatable() -> Any:
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
        yield


def cohort(mode: Mode, build: Any = small.plain, size: int = small.BATCH, **options: Any) -> Cohort:
    made = small.students(build=build, device="cuda")
    return Cohort(made, small.stream("cuda", size=size), small.teacher("cuda"), mode=mode, **options)


def losses(reports: list[EpochReport]) -> torch.Tensor:
    return torch.tensor([[found.loss for found in report.metrics.values()] for report in reports])


def close(one: Cohort, other: Cohort, tolerance: float = 1e-4) -> None:
    for mine, theirs in zip(one.students, other.students, strict=True):
        for (name, a), b in zip(mine.model.state_dict().items(), theirs.model.state_dict().values(), strict=True):
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, msg=f"{mine.name} {name}")


@pytest.mark.parametrize("size", [8, 12])  # 40 pictures: five whole batches, or three and an odd one
@pytest.mark.parametrize("streams", [True, False])
def test_a_graph_takes_the_eager_steps(size: int, streams: bool) -> None:
    eager, graph = cohort(Mode(), size=size), cohort(Mode(graph=True, streams=streams), size=size)
    expected: list[EpochReport] = []
    found: list[EpochReport] = []
    eager.fit(3, expected.append)
    graph.fit(3, found.append)
    torch.testing.assert_close(losses(found), losses(expected), rtol=1e-4, atol=1e-5)
    close(eager, graph)


def test_a_gpu_takes_the_cpus_steps() -> None:
    at_home = Cohort(small.students(build=small.plain), small.stream(), small.teacher())
    abroad = cohort(GRAPH)
    at_home.fit(2)
    abroad.fit(2)
    for mine, theirs in zip(at_home.students, abroad.students, strict=True):
        for a, b in zip(mine.model.parameters(), theirs.model.parameters(), strict=True):
            torch.testing.assert_close(a, b.cpu(), rtol=1e-3, atol=1e-3)


def test_a_student_in_a_graph_equals_the_student_alone() -> None:
    together = cohort(GRAPH)
    together.fit(2)
    for place, name in enumerate(small.OBJECTIVES):
        alone = Cohort(small.students([name], build=small.plain, device="cuda"), small.stream("cuda"),
                       small.teacher("cuda"), mode=GRAPH)  # fmt: skip
        alone.fit(2)
        for a, b in zip(alone.students[0].trained, together.students[place].trained, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_nothing_in_an_epoch_waits_for_the_device() -> None:
    graph, stream = cohort(GRAPH), small.stream("cuda")
    graph.fit(1)
    assert isinstance(graph._graph, Graphed)
    with no_synchronisation():
        graph._graph.epoch(1)
        eager = graph.students[0]
        for batch in stream.epoch(0):
            eager.step(batch, graph._signals(batch), 0, Mode())


def test_a_student_that_breaks_stops_and_the_others_go_on() -> None:
    class Breaks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = small.plain()
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

        def forward(self, x: torch.Tensor) -> Any:
            self.calls += 1
            return torch.where(self.calls == 8, torch.inf, self.net(x))

    seen: list[Any] = []
    made = small.students(build=small.plain, device="cuda")
    made[1] = small.students(["KD"], build=Breaks, device="cuda")[0]
    broken = Cohort(made, small.stream("cuda"), small.teacher("cuda"), mode=GRAPH, on_problem=seen.append)
    healthy = cohort(GRAPH)
    broken.fit(3)
    healthy.fit(3)
    assert made[1].stopped is not None
    assert made[1].stopped.startswith("Student 'KD' stopped in epoch 2, step 3: its loss is ")
    assert [(problem.epoch, problem.step) for problem in seen] == [(1, 2)]
    assert all(bool(p.isfinite().all()) for p in made[1].trained)
    for place in (0, 2):
        for a, b in zip(made[place].trained, healthy.students[place].trained, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    whole, first, second = cohort(GRAPH), cohort(GRAPH), cohort(GRAPH)
    whole.fit(4)
    checkpoints = Checkpoints(tmp_path)
    first.fit(2, lambda report: checkpoints.save(first, report.epoch))
    start, _ = Checkpoints(tmp_path).restore(second)
    assert start == 2
    second.fit(4, start=start)
    close(whole, second)


def test_everything_at_once_learns_as_float32_does() -> None:
    """bfloat16, channels-last, compiled, graph and streams, with networks of the tables."""
    stream = ResidentBatches(small.pictures("cuda"), 8, 1, small.stream().normalise, padding=1)
    recipe = Recipe(epochs=6, batch_size=8, learning_rate=2e-3)
    torch.manual_seed(0)
    source = models.create("resnet20", classes=4, float32_head=True).cuda()

    def train(mode: Mode) -> torch.Tensor:
        made = [
            Student.make(name, lambda: models.create("resnet20", classes=4, float32_head=True), Objective(terms),
                         recipe, steps_per_epoch=len(stream), seed=0, device="cuda")
            for name, terms in {**small.OBJECTIVES, "DIST": {"dist": {"temperature": 4.0}}}.items()
        ]  # fmt: skip
        reports: list[EpochReport] = []
        Cohort(made, stream, LiveTeacher(source, 4), mode=mode).fit(6, reports.append)
        return losses(reports)

    plain, best = train(Mode()), train(Mode.best("cuda"))
    torch.testing.assert_close(best[0], plain[0], rtol=0.05, atol=0.02)
    torch.testing.assert_close(best, plain, rtol=0.3, atol=0.1)
    assert (best[-1][:1] < 0.8 * best[0][:1]).all()
