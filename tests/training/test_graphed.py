"""What a CUDA graph would hold, carried out step by step on a CPU: order, rates, ledgers, warm-up, the batch ahead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from plackett.data import Batches
from plackett.errors import InputError
from plackett.training import Cohort, EpochReport, Mode, Recipe, Stepping, Student
from plackett.training.graphed import WARM_UP, Graphed
from plackett.training.lean import Lean
from plackett.training.ledger import DeviceLedger
from tests.training import small


class Replayed:
    def __init__(self, step: Callable[[], None]) -> None:
        self.replay = step


class Rehearsal(Graphed):
    """Warms up as on a GPU; a replay is a call."""

    def _captured(self) -> Any:
        with self._as_captured():
            for _ in range(WARM_UP):
                self._first_batch()
                self._whole_step()

        def whole_step() -> None:
            with self._held():
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


class Odd(nn.Module):
    """What a graph must not touch, or count as it is: shared, frozen, derived, repeated and float32 convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.stem = nn.Conv2d(4, 4, 1)
        self.shared, self.back = nn.Conv2d(4, 4, 1), nn.ConvTranspose2d(4, 4, 1)
        self.back.weight = self.shared.weight
        self.frozen = nn.Conv2d(4, 4, 1).requires_grad_(False)
        self.twice = nn.Conv2d(4, 4, 1)
        self.derived = Standardised(4, 4, 3)
        self.norm, self.both = nn.BatchNorm2d(4), nn.BatchNorm2d(4)
        self.instance = nn.InstanceNorm2d(4, track_running_stats=True)
        self.still = Still(4)
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        x = self.norm(self.first(x))
        with torch.autocast("cpu", enabled=False):
            x = self.stem(x.float())
        x = self.back(self.shared(x)) + self.frozen(x)
        x = self.both(self.twice(self.both(self.twice(x))))
        return self.fc(self.still(self.instance(self.derived(x))).relu().mean((2, 3)))


class Standardised(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, self.weight - self.weight.mean((1, 2, 3), keepdim=True), self.bias)


class Still(nn.BatchNorm2d):
    def train(self, mode: bool = True) -> Still:
        return super().train(False)


@pytest.mark.parametrize("parts", [1, 4])
def test_whatever_a_network_does_a_graph_takes_its_eager_steps(parts: int) -> None:
    """To the bit, and norms count what they do count: once a pass, twice, or never."""
    mode = Mode(bfloat16=True)
    made = [students(Odd)[:1] for _ in range(2)]
    for (student,) in made:
        student.stepping = Stepping(parts=parts)
    eager, graph = (Cohort(each, small.stream(), small.teacher(), mode=mode) for each in made)
    eager.fit(2)
    rehearse(graph, 2)
    (one,), (other,) = made
    want, found = one.model.state_dict(), other.model.state_dict()
    for name, tensor in want.items():
        assert torch.equal(found[name], tensor), name
    counts = {name: int(x) for name, x in found.items() if name.endswith("num_batches_tracked")}
    assert [counts[f"{n}.num_batches_tracked"] for n in ("norm", "both", "instance", "still")] == [
        10 * parts, 20 * parts, 0, 0,
    ]  # fmt: skip


def test_halves_stand_in_only_where_nothing_else_can_tell() -> None:
    (student,) = students(Odd)[:1]
    random_state = torch.get_rng_state()
    lean = Lean(student, next(iter(small.stream().epoch(0))).inputs, Mode(bfloat16=True))
    assert torch.equal(torch.get_rng_state(), random_state)
    assert int(student.model.get_buffer("norm.num_batches_tracked")) == 0
    model: Any = student.model
    kept = model.first.weight
    with lean.inside():
        assert model.first.weight.dtype == torch.bfloat16
        others = (model.stem, model.shared, model.back, model.frozen, model.twice, model.derived, model.fc)
        assert {other.weight.dtype for other in others} == {torch.float32}
        torch.nn.init.ones_(kept)
        lean.refresh()
        assert bool((model.first.weight == 1).all())
    assert model.first.weight is kept
    with pytest.raises(ZeroDivisionError), lean.inside():
        raise ZeroDivisionError
    assert model.first.weight is kept
    assert isinstance(model.norm.num_batches_tracked, Tensor)


def test_students_are_as_they_were_where_a_capture_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = Cohort(students(), small.stream(), small.teacher(), mode=Mode(bfloat16=True))
    monkeypatch.setattr(Graphed, "_whole_step", lambda self: 1 / 0)
    before = [small.weights(student) for student in cohort.students]
    with pytest.raises(ZeroDivisionError):
        Rehearsal(cohort.students, cohort.batches, cohort._signals, cohort._ways, cohort.mode)
    for student, held in zip(cohort.students, before, strict=True):
        assert not isinstance(student.ledger, DeviceLedger) or not student.ledger.flag
        assert all(torch.equal(held[name], tensor) for name, tensor in small.weights(student).items())


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


def test_an_optimiser_that_asks_the_host_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asks(Recipe):
        def make(self, parameters: Any) -> Optimizer:
            return torch.optim.SGD(list(parameters), lr=self.learning_rate)

    (student,) = small.students(["CE"], build=small.plain, recipe=Asks(**vars(small.RECIPE)))
    student.ledger = DeviceLedger(("ce",), torch.device("cpu"), looks=True)
    sentence = (
        "Student 'CE': SGD asks the host at every step whether it may, which a CUDA graph cannot; use graph=False"
    )
    monkeypatch.setattr(Mode, "check", lambda *_: None)
    with pytest.raises(InputError, match=sentence):
        Cohort([student], small.stream(), mode=Mode(graph=True))


def test_an_odd_batch_is_not_compiled_for() -> None:
    calls: list[int] = []

    def compiled(function: Callable[..., None]) -> Callable[..., None]:
        def noted(losses: Any, logits: Tensor, *rest: Any) -> None:
            calls.append(len(logits))
            function(losses, logits, *rest)

        return noted

    ledger = DeviceLedger(("ce",), torch.device("cpu"))
    ledger.tune(compiled)
    for n in (8, 8, 3, 8):
        ledger.enter(0, [torch.tensor(1.0)] * 2, [torch.ones(2)], torch.zeros(n, 4), torch.zeros(n, dtype=torch.int64))
    assert calls == [8, 8, 8]
    assert ledger.sums()[-1] == 27


def test_a_mode_says_what_is_in_use() -> None:
    assert str(Mode()) == "eager, float32"
    assert str(Mode.best("cuda")) == (
        "one CUDA graph a step, the teacher a batch ahead, a stream a student, compiled forwards, channels-last, "
        "bfloat16"
    )
    assert Mode.best("cpu") == Mode()
