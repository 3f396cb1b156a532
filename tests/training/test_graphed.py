"""What a CUDA graph would hold, carried out step by step on a CPU: order, rates, ledgers, warm-up, the batch ahead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.optim import AdamW, Optimizer

from plackett.data import Batches
from plackett.errors import InputError
from plackett.training import Cohort, EpochReport, Mode, Recipe, Student
from plackett.training.graphed import WARM_UP, Graphed
from plackett.training.halves import Halves
from plackett.training.ledger import DeviceLedger
from tests.training import small


class Replayed:
    def __init__(self, step: Callable[[], None]) -> None:
        self.replay = step


class Rehearsal(Graphed):
    """Warms up as on a GPU; a replay is a call."""

    def _captured(self) -> Any:
        with self._as_captured():
            kept = self._set_aside()
            for _ in range(WARM_UP):
                self._first_batch()
                self._whole_step()
            self._restore(kept)

        def whole_step() -> None:
            with self._as_captured():
                self._whole_step()

        return Replayed(self._first_batch), Replayed(whole_step)


class DeviceRecipe(Recipe):
    """With a rate in a tensor, as on a GPU."""

    def make(self, parameters: Any) -> Optimizer:
        rate = torch.tensor(self.learning_rate)
        return AdamW(list(parameters), lr=rate, weight_decay=self.weight_decay, fused=True)


def students(build: Any = small.plain) -> list[Student]:
    made = small.students(build=build, recipe=DeviceRecipe(**vars(small.RECIPE)))
    for student in made:
        student.ledger = ledger = DeviceLedger(tuple(student.objective.losses), torch.device("cpu"))
        student.optimiser.found_inf = ledger.flag  # type: ignore[attr-defined]
    return made


def rehearse(cohort: Cohort, epochs: int, on_epoch: Callable[[EpochReport], None] | None = None) -> None:
    """A cohort that believes it has a graph."""
    mode = cohort.mode
    graph = Rehearsal(cohort.going(), cohort.batches, cohort._signals, cohort._ways, mode)
    cohort.mode, cohort._graph = replace(mode, graph=True), graph
    cohort.fit(epochs, on_epoch)


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("size", [8, 12])  # 40 pictures: five whole batches, or three and an odd one
def test_a_graph_takes_the_eager_steps(size: int, bfloat16: bool) -> None:
    mode = Mode(bfloat16=bfloat16)
    eager = Cohort(students(), small.stream(size=size), small.teacher(), mode=mode)
    graph = Cohort(students(), small.stream(size=size), small.teacher(), mode=mode)
    expected: list[EpochReport] = []
    found: list[EpochReport] = []
    eager.fit(3, expected.append)
    rehearse(graph, 3, found.append)
    for one, other in zip(eager.students, graph.students, strict=True):
        assert small.same(one, other)
        assert [r.metrics[one.name] for r in expected] == [r.metrics[one.name] for r in found]


def test_networks_objectives_and_ledgers_are_compiled_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, for a break in one of them would be a launch by the host in the middle of a graph."""
    calls = []

    def whole(self: Mode, function: Callable[..., Any]) -> Callable[..., Any]:
        calls.append(function)
        return torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=False)

    plain, compiled = (Cohort(students(), small.stream(), small.teacher()) for _ in range(2))
    monkeypatch.setattr(Mode, "compiled", whole)
    compiled._ways = {student.name: student.tune(Mode(compile=True)) for student in compiled.students}
    for student in compiled.students:
        assert student.model in calls
        assert student.objective in calls
    expected: list[EpochReport] = []
    found: list[EpochReport] = []
    rehearse(plain, 2, expected.append)
    rehearse(compiled, 2, found.append)
    for one, other in zip(plain.students, compiled.students, strict=True):
        for name, tensor in one.model.state_dict().items():
            torch.testing.assert_close(other.model.state_dict()[name], tensor, rtol=1e-4, atol=1e-5)
        for before, after in zip(expected, found, strict=True):
            assert after.metrics[one.name].accuracy == before.metrics[one.name].accuracy
            assert after.metrics[one.name].loss == pytest.approx(before.metrics[one.name].loss, rel=1e-4)


def test_convolutions_have_halves_only_while_a_graph_is_made() -> None:
    cohort = Cohort(students(), small.stream(), small.teacher(), mode=Mode(bfloat16=True))
    (halves, *_), student = [Halves(each) for each in cohort.students], cohort.students[0]
    convolution = student.model.get_submodule("conv")
    kept = convolution.weight
    with halves.inside():
        assert convolution.weight.dtype == torch.bfloat16
        assert any(leaf is convolution.weight for leaf in halves.leaves)
        torch.nn.init.ones_(kept)
        halves.refresh()
        assert bool((convolution.weight == 1).all())
    assert convolution.weight is kept
    assert [leaf.dtype for leaf in halves.leaves].count(torch.bfloat16) == 1
    with pytest.raises(ZeroDivisionError), halves.inside():
        raise ZeroDivisionError
    assert convolution.weight is kept


def test_norms_count_their_batches_though_a_graph_does_not() -> None:
    cohort = Cohort(students(), small.stream(), small.teacher())
    rehearse(cohort, 2)
    assert [int(s.model.get_buffer("norm.num_batches_tracked")) for s in cohort.students] == [10] * len(cohort.students)


def test_warming_up_leaves_no_trace() -> None:
    cohort = Cohort(students(), small.stream(), small.teacher())
    before = [small.weights(student) for student in cohort.students]
    Rehearsal(cohort.students, cohort.batches, cohort._signals, cohort._ways, Mode())
    for student, held in zip(cohort.students, before, strict=True):
        assert all(torch.equal(held[name], tensor) for name, tensor in small.weights(student).items())
        for state in student.optimiser.state.values():
            assert not any(bool(value.any()) for value in state.values())
        assert student.ledger.not_finite() is None


def test_a_student_that_breaks_keeps_its_last_good_weights(tmp_path: Path) -> None:
    """The host looks after the epoch; the flag was up since the step itself."""

    class Breaks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = small.plain()
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

        def forward(self, x: torch.Tensor) -> Any:
            self.calls += 1
            return torch.where(self.calls == 8, torch.inf, self.net(x))

    seen: list[Any] = []
    cohort = Cohort(students(Breaks), small.stream(), small.teacher(), on_problem=seen.append)
    rehearse(cohort, 3)
    healthy = Cohort(students(), small.stream(), small.teacher())
    healthy.fit(1)
    for step, batch in enumerate(list(small.stream().epoch(1))[:2], 5):
        for student in healthy.students:
            student.rate(step)
            student.step(batch, healthy._signals(batch), step, Mode())
    for student, other in zip(cohort.students, healthy.students, strict=True):
        good = dict(other.model.named_parameters())
        assert all(torch.equal(p, good[name.removeprefix("net.")]) for name, p in student.model.named_parameters())
        assert student.stopped is not None
        assert student.stopped.startswith(f"Student {student.name!r} stopped in epoch 2, step 3: its loss is ")
    assert [(p.epoch, p.step, len(p.batch.targets)) for p in seen] == [(1, 2, 8)] * 3
    path = seen[0].save(tmp_path)
    assert path.name == "not-finite-epoch-2-step-3.safetensors"
    held, expected = load_file(path), list(small.stream().epoch(1))[2]
    assert torch.equal(held["indices"], expected.indices)
    assert torch.equal(held["inputs"], expected.inputs)


def test_a_graph_needs_a_gpu_and_resident_batches() -> None:
    with pytest.raises(
        InputError, match="A CUDA graph needs a CUDA device, and the pictures are on cpu; use graph=False"
    ):
        Cohort(students(), small.stream(), small.teacher(), mode=Mode(graph=True))
    with pytest.raises(InputError, match="Streams overlap students inside a CUDA graph"):
        Cohort(students(), small.stream(), small.teacher(), mode=Mode(streams=True))
    batches: Any = Batches(small.pictures(), 8, 0)
    with pytest.raises(InputError, match="A CUDA graph makes its own batches and needs ResidentBatches"):
        Rehearsal(students(), batches, lambda batch: None, {}, Mode())
    with pytest.raises(InputError, match="40 pictures do not fill one batch of 64"):
        Rehearsal(students(), small.stream(size=64), lambda batch: None, {}, Mode())


def test_a_mode_says_what_is_in_use() -> None:
    assert str(Mode()) == "eager, float32"
    assert str(Mode.best("cuda")) == (
        "one CUDA graph a step, the teacher a batch ahead, a stream a student, compiled forwards, channels-last, "
        "bfloat16"
    )
    assert Mode.best("cpu") == Mode()
