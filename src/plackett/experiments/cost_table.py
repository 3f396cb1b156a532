"""What every method cost, from the runs themselves: time alone or in a cohort, memory, latency; without torch.

The students of a cohort share a teacher's pass and a device, so that a cohort's seconds are no method's own: a method's
own are those of a cohort of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plackett import yamls
from plackett.errors import InputError, did_you_mean
from plackett.experiments import cells as records
from plackett.experiments import plain
from plackett.experiments.cells import Cell
from plackett.experiments.recipes import shipped
from plackett.experiments.records import RUN, find_runs, read_run
from plackett.experiments.statistics import Summary, median, summary
from plackett.experiments.transfer import COSTS, Costs, read

COLUMNS = (
    *("recipe", "pair", "device", "method", "cohort", "n", "seconds", "std", "seconds_a_student", "epochs"),
    *("times_base", "peak_mib", "peak_of", "latency_ms", "parameters", "paper_minutes", "paper_times_base"),
)


@dataclass(frozen=True)
class Held:
    """One cohort: what it took, and, where its run folder is at hand, what that says besides."""

    cell: Cell
    costs: Costs | None = None

    @property
    def members(self) -> int:
        return len(self.cell.cohort)


@dataclass(frozen=True)
class Line:
    """A method in cohorts of one size: `seconds` are the cohort's, over `seconds.n` of them."""

    method: str
    cohort: int
    seconds: Summary
    epochs: int
    times: float | None
    peak: tuple[float, str] | None
    latency: float | None
    parameters: int | None
    paper: float | None
    paper_times: float | None


@dataclass(frozen=True)
class Table:
    recipe: str
    pair: str
    device: str
    base: str
    lines: list[Line] = field(default_factory=list)


def paper() -> Mapping[str, Mapping[str, float]]:
    """Minutes by pair and method."""
    held: Mapping[str, Mapping[str, float]] = yamls.load(shipped("cifar100-paper.yaml"))["minutes"]
    return held


def gather(places: Sequence[Path], base: str | None = None) -> list[Table]:
    """A table for each recipe, pair and device."""
    cells = records.gather(places)
    costs = _costs(places)
    known = {cell.method for cell in cells.values()}
    if base is not None and base not in known:
        raise InputError(f"There is no cell of {base!r} to compare with; {did_you_mean(base, known)}.")
    usual = base or next((name for name in ("ce", "CE") if name in known), "ce")
    groups: dict[tuple[str, str, str], list[Held]] = {}
    for cell in cells.values():
        if cell.seconds is not None and cell.stopped is None:
            key = (cell.recipe, cell.pair, cell.device)
            found = costs.get((cell.recipe, cell.pair, cell.seed, tuple(cell.cohort)))
            groups.setdefault(key, []).append(Held(cell, found))
    if not groups:
        raise InputError(f"No cell in {', '.join(map(str, places))} says how long it took.")
    return [_table(*key, held, usual) for key, held in groups.items()]


def _costs(places: Iterable[Path]) -> dict[tuple[str, str, int, tuple[str, ...]], Costs]:
    found = {}
    for place in places:
        if not place.is_dir() or not any(place.rglob(RUN)):
            continue
        for folder in find_runs(place):
            run = read_run(folder)
            said = read(folder, COSTS, Costs) if run.results is not None else None
            if said is not None:
                record = run.record
                found[record.name, record.group, record.seed, tuple(record.students)] = said
    return found


def _table(recipe: str, pair: str, device: str, held: Sequence[Held], base: str) -> Table:
    of: dict[tuple[str, int], list[Held]] = {}
    for each in held:
        of.setdefault((each.cell.method, each.members), []).append(each)
    alone = {method: _seconds(group).mean for (method, members), group in of.items() if members == 1}
    theirs = paper().get(pair, {}) if recipe.startswith("cifar100") else {}
    order = {name: i for i, name in enumerate(dict.fromkeys(method for method, _ in of))}
    lines = []
    for (method, members), group in sorted(of.items(), key=lambda item: (item[0][1], order[item[0][0]])):
        costs = [each.costs for each in group if each.costs is not None]
        epochs = {each.cell.epochs for each in group}
        comparable = members == 1 and base in alone and len(epochs) == 1
        paper_minutes = theirs.get(method)
        latencies = [c.latency[method].median_ms for c in costs if method in c.latency]
        lines.append(
            Line(
                method,
                members,
                _seconds(group),
                max(epochs),
                alone[method] / alone[base] if comparable and alone[base] > 0 else None,
                (max(c.peak_mib for c in costs), costs[0].peak_of) if costs else None,
                median(latencies) if latencies else None,
                next((c.parameters[method] for c in costs if method in c.parameters), None),
                paper_minutes,
                paper_minutes / theirs["ce"] if paper_minutes is not None else None,
            )
        )
    return Table(recipe, pair, device, base, lines)


def _seconds(group: Sequence[Held]) -> Summary:
    return summary([each.cell.seconds for each in group if each.cell.seconds is not None])


def text(table: Table, form: str = "text") -> str:
    """What a person reads."""
    with_paper = any(line.paper is not None for line in table.lines)
    head = ["method", "cohort of", "seconds", "n", "s a student", f"x {table.base}", "peak MiB", "ms a picture"]
    rows = [[*head, "paper, min", "paper, x ce"] if with_paper else head]
    for line in table.lines:
        spread = "" if line.seconds.std is None else f" ± {line.seconds.std:.1f}"
        row = [
            line.method,
            str(line.cohort),
            f"{line.seconds.mean:.1f}{spread}",
            str(line.seconds.n),
            f"{line.seconds.mean / line.cohort:.1f}",
            "shared" if line.cohort > 1 else "-" if line.times is None else f"{line.times:.2f}",
            "-" if line.peak is None else f"{line.peak[0]:,.0f} ({line.peak[1]})",
            "-" if line.latency is None else f"{line.latency:.3g}",
        ]
        theirs = ["-" if line.paper is None else f"{line.paper:.2f}",
                  "-" if line.paper_times is None else f"{line.paper_times:.2f}"]  # fmt: skip
        rows.append([*row, *theirs] if with_paper else row)
    shape = plain.markdown if form == "markdown" else plain.aligned
    return f"{table.pair} ({table.recipe}; {table.device})\n\n{shape(rows)}"


def notes(tables: Sequence[Table]) -> list[str]:
    lines = [line for table in tables for line in table.lines]
    said = ["Seconds are those of the whole cohort, tests and checkpoints on the way among them."]
    if any(line.cohort > 1 for line in lines):
        said.append(
            "A cohort shares the teacher's pass and the device, so that its seconds are no method's own, and seconds a "
            "student are a share. A method alone: the same command with --per-cohort 1, and another --out."
        )
    if any(line.peak is not None and line.peak[1] == "process" for line in lines):
        said.append("The peak of a process is all that it ever held, libraries among it; that of a device is torch's.")
    if any(line.paper is not None for line in lines):
        said.append("Paper: minutes of a whole training, on a device that it does not name; only ratios compare.")
    return said


def csv_rows(tables: Sequence[Table]) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = [COLUMNS]
    for table in tables:
        for line in table.lines:
            peak = line.peak or (None, None)
            share = line.seconds.mean / line.cohort
            rows.append([
                table.recipe, table.pair, table.device, line.method, line.cohort, line.seconds.n,
                f"{line.seconds.mean:.6g}", _short(line.seconds.std), f"{share:.6g}", line.epochs, _short(line.times),
                *peak, _short(line.latency), line.parameters, line.paper, _short(line.paper_times),
            ])  # fmt: skip
    return rows


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"
