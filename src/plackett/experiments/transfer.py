"""What a run leaves beside its results: how alike student and teacher are, and what everything cost; without torch.

transfer.json   Transfer: every student against the teacher, on the test pictures
costs.json      Costs: time, memory, latency
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from plackett.experiments.records import SCHEMA, CalibrationRecord, Document, Run, read_document
from plackett.experiments.statistics import Summary, summary

TRANSFER, COSTS = "transfer.json", "costs.json"
D = TypeVar("D", bound=Document)


class ClassRecord(Document):
    """`count` test pictures of one class, and the shares that each gets right."""

    count: int
    teacher: float | None
    student: float | None


class Alignment(Document):
    """Two networks on the same pictures; divergences in nats, of the softmax at temperature 1, over offered classes.

    Args:
        pictures: how many.
        ranked: of so many of them, evenly spaced, the three rank figures are.
        forward_kl: KL(teacher || student), the paper's alignment table.
        js: Jensen-Shannon divergence.
        top1: share of pictures with the same first class.
        top5: share of the five highest classes (or all, if fewer) that both have.
        spearman: of the logits of a picture, a mean over pictures; `kendall` is tau-b.
        weighted: of two classes drawn by the teacher's probabilities, the share that both put in the same order.
        first_choice_weight: the mean probability that the student gives to the label.
        teacher_first_choice_weight: the same of the teacher: what PLD at temperature 1 pays for the label's choice.
        only_teacher: share of pictures that only the teacher gets right.
    """

    pictures: int
    ranked: int
    forward_kl: float
    reverse_kl: float
    js: float
    top1: float
    top5: float
    spearman: float
    kendall: float
    weighted: float
    first_choice_weight: float
    teacher_first_choice_weight: float
    accuracy: float
    teacher_accuracy: float
    both: float
    only_teacher: float
    only_student: float
    neither: float
    calibration: CalibrationRecord
    teacher_calibration: CalibrationRecord
    classes: list[ClassRecord]

    @property
    def ece(self) -> float:
        return self.calibration.ece


class Transfer(Document):
    schema_version: int = SCHEMA
    students: dict[str, Alignment]


class LatencyRecord(Document):
    """The median of `n` calls with `batch` pictures, in ms."""

    median_ms: float
    n: int
    batch: int


class Costs(Document):
    """Of a whole cohort: its students were trained side by side, and `seconds` and `peak_mib` are theirs together.

    `peak_of` says whether the memory is the device's (what torch allocated) or the process's (all that it ever held).
    """

    schema_version: int = SCHEMA
    seconds: float
    epochs: int
    steps: int
    students: list[str]
    peak_mib: float
    peak_of: Literal["device", "process"]
    latency: dict[str, LatencyRecord]
    teacher_latency: LatencyRecord | None = None
    parameters: dict[str, int]
    teacher_parameters: int | None = None
    threads: int


def read(folder: Path, file: str, kind: type[D]) -> D | None:
    """A document of a run folder; None where there is none, as in runs of older versions."""
    return read_document(folder / file, kind) if (folder / file).exists() else None


class Figure(NamedTuple):
    """How one figure of an alignment is shown: its field, its name, what it is multiplied by, and its digits."""

    field: str
    title: str
    scale: float = 1.0
    digits: int = 3

    def of(self, found: Sequence[Alignment]) -> Summary:
        return summary([getattr(each, self.field) for each in found])

    def text(self, found: Sequence[Alignment]) -> str:
        """Mean ± std over seeds; of one seed the figure alone."""
        of = self.of(found)
        return of.text(self.scale, self.digits) if of.n > 1 else f"{of.mean * self.scale:.{self.digits}f}"


FIGURES = (
    Figure("forward_kl", "KL(teacher || student), nats"),
    Figure("reverse_kl", "KL(student || teacher), nats"),
    Figure("js", "Jensen-Shannon, nats"),
    Figure("top1", "same first class, %", 100, 1),
    Figure("top5", "first five in common, %", 100, 1),
    Figure("spearman", "Spearman's rho"),
    Figure("kendall", "Kendall's tau-b"),
    Figure("weighted", "order, weighted by the teacher, %", 100, 1),
    Figure("first_choice_weight", "mean probability of the label"),
    Figure("only_teacher", "only the teacher is right, %", 100, 1),
    Figure("only_student", "only the student is right, %", 100, 1),
    Figure("neither", "neither is right, %", 100, 1),
    Figure("ece", "expected calibration error, %", 100, 1),
    Figure("accuracy", "accuracy, %", 100, 1),
)


def gather(runs: Iterable[Run]) -> dict[str, list[Alignment]]:
    """Every method's alignments over the runs that have them."""
    found: dict[str, list[Alignment]] = {}
    for run in runs:
        transfer = read(run.folder, TRANSFER, Transfer) if run.results is not None else None
        for name, each in (transfer.students if transfer else {}).items():
            found.setdefault(name, []).append(each)
    return found


def table(found: Mapping[str, Sequence[Alignment]]) -> list[list[object]]:
    """Every figure of every method, unscaled, for a file."""
    rows: list[list[object]] = [["method", "figure", "n", "mean", "std"]]
    for method, each in found.items():
        for figure in FIGURES:
            of = figure.of(each)
            rows.append([method, figure.field, of.n, f"{of.mean:.6g}", "" if of.std is None else f"{of.std:.6g}"])
    return rows


def largest_changes(found: Sequence[Alignment], most: int = 5) -> list[tuple[int, float, float]]:
    """Classes whose accuracy differs most between teacher and student: number, teacher's and student's mean share."""
    rows = []
    for number, records in enumerate(zip(*(each.classes for each in found), strict=True)):
        seen = [r for r in records if r.count and r.teacher is not None and r.student is not None]
        if seen:
            shares = ([r.teacher or 0.0 for r in seen], [r.student or 0.0 for r in seen])
            rows.append((number, summary(shares[0]).mean, summary(shares[1]).mean))
    return sorted(rows, key=lambda row: (-abs(row[2] - row[1]), row[0]))[:most]
