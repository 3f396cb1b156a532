"""A whole step of a cohort as one CUDA graph.

At batch 128 a GPU waits for the host, which cannot launch the thousands of small kernels of a teacher and eight
students fast enough. A graph is launched once. In it every student runs on a stream of its own on this batch, while
another stream makes the next batch and runs the teacher over it:

    student 1   forward, loss, gradient, optimiser   -+
    student 2   forward, loss, gradient, optimiser   -+- join, then the next batch becomes this one
    next batch  crop, flip, normalise, teacher       -+

What changes from step to step (the epoch, its order, the step, the rates) lies in tensors that the graph reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor

from plackett.data import Batch, ResidentBatches, Stream
from plackett.errors import InputError
from plackett.teachers import Signals
from plackett.training.charge import Ways
from plackett.training.lean import Lean
from plackett.training.ledger import DeviceLedger
from plackett.training.mode import Mode
from plackett.training.optimise import Schedule
from plackett.training.student import Student

WARM_UP = 3  # steps before a capture: kernels are chosen, compiled and loaded in them


class Graphed:
    """`epoch(e)` takes all full batches of an epoch; the host only launches."""

    def __init__(
        self,
        students: Sequence[Student],
        stream: Stream,
        signals: Callable[[Batch], Signals | None],
        ways: Mapping[str, Ways],
        mode: Mode,
    ) -> None:
        if not isinstance(stream, ResidentBatches):
            raise InputError(
                "A CUDA graph makes its own batches and needs ResidentBatches; use graph=False with others."
            )
        self.students, self.stream, self.mode = students, stream, mode
        self.steps = len(stream.pictures) // stream.size
        if not self.steps:
            raise InputError(f"{len(stream.pictures)} pictures do not fill one batch of {stream.size}.")
        self._teach = signals
        device = stream.pictures.device
        self._inputs = mode.compiled(stream.inputs)
        self._places = torch.arange(stream.size, device=device)
        self._order = stream.order(0)
        self._epoch = torch.zeros((), dtype=torch.int64, device=device)
        self._step = torch.zeros((), dtype=torch.int64, device=device)  # within the epoch
        self._taken = torch.zeros((), dtype=torch.int64, device=device)  # over all epochs
        self._rates = _shared_rates(students, device)
        count = len(students) if mode.streams else 0
        self._sides = [torch.cuda.Stream(device) for _ in range(count)]  # type: ignore[no-untyped-call]
        self._batch, self._signals = self._next()
        self._lean = [Lean(student, self._batch.inputs, mode) for student in students]
        self._ways = [ways[s.name]._replace(leaves=x.leaves) for s, x in zip(students, self._lean, strict=True)]
        self._first, self._whole = self._captured()

    def epoch(self, epoch: int) -> int:
        """Takes the epoch's full batches; says how many there were."""
        self._order.copy_(self.stream.order(epoch))
        self._epoch.fill_(epoch)
        self._step.zero_()
        self._taken.fill_(epoch * len(self.stream))
        self._first.replay()
        for _ in range(self.steps):
            self._whole.replay()
        for lean in self._lean:
            lean.count(self.steps)
        return self.steps

    def _next(self) -> tuple[Batch, Signals | None]:
        """The batch of `_step`, and what the teacher says of it; after the last, the last again, for nobody."""
        step = self._step.clamp(max=self.steps - 1)
        indices = self._order[step * self.stream.size + self._places]
        inputs = self._inputs(indices, self._epoch)
        batch = Batch(inputs, self.stream.pictures.targets[indices], indices, self._epoch)
        return batch, self._teach(batch)

    def _turn(self, batch: Batch, signals: Signals | None) -> None:
        """The next batch becomes this one."""
        for old, new in ((self._batch.inputs, batch.inputs), (self._batch.targets, batch.targets)):
            old.copy_(new)
        self._batch.indices.copy_(batch.indices)
        if signals is not None and self._signals is not None:
            self._signals.logits.copy_(signals.logits)
            for name, feature in (signals.features or {}).items():
                (self._signals.features or {})[name].copy_(feature)

    def _first_batch(self) -> None:
        self._turn(*self._next())
        self._step += 1

    def _whole_step(self) -> None:
        for table, rate in self._rates:
            # Not table[taken]: indexing by one number fetches it to the host.
            rate.copy_(table.index_select(0, self._taken.clamp(max=len(table) - 1).view(1)).squeeze())
        sides: Sequence[torch.cuda.Stream | None] = self._sides or [None] * len(self.students)
        for student, lean, ways, side in zip(self.students, self._lean, self._ways, sides, strict=True):
            with _beside(side):
                lean.refresh()
                student.step(self._batch, self._signals, self._taken, self.mode, ways)
        following = self._next()
        for side in self._sides:
            torch.cuda.current_stream().wait_stream(side)
        self._turn(*following)
        self._step += 1
        self._taken += 1

    def _captured(self) -> tuple[torch.cuda.CUDAGraph, torch.cuda.CUDAGraph]:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), self._as_captured(), _benchmarked():
            for _ in range(WARM_UP):
                self._first_batch()
                self._whole_step()
            first, whole = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            with torch.cuda.graph(first, stream=stream):
                self._first_batch()
            with torch.cuda.graph(whole, stream=stream):
                self._whole_step()
        torch.cuda.current_stream().wait_stream(stream)
        return first, whole

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Networks as the graph holds them."""
        with ExitStack() as stack:
            for lean in self._lean:
                stack.enter_context(lean.inside())
            yield

    @contextmanager
    def _as_captured(self) -> Iterator[None]:
        """Every flag is up, so that warming up changes no weight, and what it would still change is put back."""
        with self._held():
            flags = [s.ledger.flag for s in self.students if isinstance(s.ledger, DeviceLedger)]
            buffers = [b for s in self.students for module in (s.model, s.objective) for b in module.buffers()]
            kept = [(tensor, tensor.clone()) for tensor in (*flags, *buffers)]
            try:
                for flag in flags:
                    flag.fill_(1.0)
                yield
            finally:
                for tensor, value in kept:
                    tensor.copy_(value)


@contextmanager
def _benchmarked() -> Iterator[None]:
    """The fastest of a library's convolutions is looked for once, and then held by the graph."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _shared_rates(students: Sequence[Student], device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """Every schedule's table, and the one tensor from which all optimisers that follow it read their rate."""
    found: dict[Schedule, tuple[Tensor, Tensor]] = {}
    for student in students:
        if student.schedule not in found:
            found[student.schedule] = student.schedule.table(device), torch.zeros((), device=device)
        for group in student.optimiser.param_groups:
            group["lr"] = found[student.schedule][1]
    return list(found.values())


@contextmanager
def _beside(side: torch.cuda.Stream | None) -> Iterator[None]:
    """On `side`, after all that the current stream has been given so far."""
    if side is None:
        yield
        return
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        yield
