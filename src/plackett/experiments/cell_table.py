"""Cells -> a table for each pair of networks, with the paper's figures beside ours; without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from plackett import yamls
from plackett.errors import InputError, did_you_mean
from plackett.experiments import plain
from plackett.experiments.cells import Cell
from plackett.experiments.recipes import shipped
from plackett.experiments.statistics import Difference, Summary, paired, summary

FORMATS = ("text", "markdown", "latex", "csv")
COLUMNS = (
    *("recipe", "pair", "method", "n", "mean", "std", "base", "difference", "low", "high"),
    *("best_mean", "best_std", "paper_mean", "paper_spread"),
)


@dataclass(frozen=True)
class Line:
    """One method: `last` and `best` are None where every seed stopped; `paper` is mean and spread in %."""

    method: str
    title: str
    last: Summary | None
    best: Summary | None
    difference: Difference | None
    paper: tuple[float, float] | None
    stopped: int


@dataclass(frozen=True)
class Table:
    recipe: str
    pair: str
    base: str
    lines: list[Line]
    teachers: list[str]
    seeds: list[int]
    epochs: list[int]
    tests: list[int]

    @property
    def has_paper(self) -> bool:
        return any(line.paper is not None for line in self.lines)


def paper() -> tuple[str, Mapping[str, Mapping[str, tuple[float, float]]]]:
    """The source, and mean and spread by pair and method."""
    held = yamls.load(shipped("cifar100-paper.yaml"))
    pairs = {pair: {m: (float(mean), float(spread)) for m, (mean, spread) in figures.items()}
             for pair, figures in held["pairs"].items()}  # fmt: skip
    return str(held["source"]), pairs


def size() -> tuple[int, int]:
    """Epochs and test pictures of the paper's figures."""
    held = yamls.load(shipped("cifar100-paper.yaml"))
    return int(held["epochs"]), int(held["test"])


def tables(cells: Iterable[Cell], base: str = "kd") -> list[Table]:
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.recipe, cell.pair), []).append(cell)
    known = {cell.method for group in groups.values() for cell in group}
    if base not in known and base != "kd":
        raise InputError(f"There is no cell of {base!r} to compare with; {did_you_mean(base, known)}.")
    return [_table(recipe, pair, group, base) for (recipe, pair), group in groups.items()]


def _table(recipe: str, pair: str, cells: Sequence[Cell], base: str) -> Table:
    of: dict[str, dict[int, Cell]] = {}
    for cell in cells:
        of.setdefault(cell.method, {})[cell.seed] = cell
    right = {m: {s: c.accuracy for s, c in seeds.items() if c.accuracy is not None} for m, seeds in of.items()}
    theirs = paper()[1].get(pair, {}) if recipe == "cifar100" else {}
    lines = []
    for method, seeds in of.items():
        both = sorted(right[method].keys() & right.get(base, {}).keys())
        difference = None
        if both and method != base:
            resolution = 1 / min(cell.test for cell in seeds.values())
            pairs = [right[method][s] for s in both], [right[base][s] for s in both]
            difference = paired(*pairs, resolution=resolution)
        best = [cell.best_accuracy for cell in seeds.values() if cell.best_accuracy is not None]
        lines.append(
            Line(
                method,
                next(iter(seeds.values())).title,
                summary(list(right[method].values())) if right[method] else None,
                summary(best) if best else None,
                difference,
                theirs.get(method),
                sum(cell.stopped is not None for cell in seeds.values()),
            )
        )
    notes = {f"{c.teacher.network} {100 * c.teacher.accuracy:.2f} %" for c in cells if c.teacher is not None}
    return Table(recipe, pair, base, lines, sorted(notes), sorted({c.seed for c in cells}),
                 sorted({c.epochs for c in cells}), sorted({c.test for c in cells}))  # fmt: skip


def render(made: Sequence[Table], form: str) -> str:
    if form not in FORMATS:
        raise InputError(f"There is no format {form!r}; {did_you_mean(form, FORMATS)}.")
    if form == "csv":
        return _csv(made)
    shape: dict[str, Callable[[Table], str]] = {"text": _text, "markdown": _markdown, "latex": _latex}
    blocks = [shape[form](table) for table in made]
    note = notes(made)
    blocks.append("\n".join(f"% {line}" for line in note.splitlines()) if form == "latex" else note)
    return "\n\n".join(blocks) + "\n"


def notes(made: Sequence[Table]) -> str:
    parts = [
        "Test accuracy in %, mean ± standard deviation over seeds, after the last epoch; best is the highest that was "
        "measured on the test pictures on the way, and no choice was made by it. Differences are paired by seed, with "
        "95 % intervals that stand for themselves alone."
    ]
    if any(table.has_paper for table in made):
        parts.append(f"Paper: {paper()[0]}; its text calls the ± a standard deviation, its checklist a standard error.")
    epochs, test = size()
    for table in made:
        if table.has_paper and (table.epochs, table.tests) != ([epochs], [test]):
            parts.append(
                f"{table.pair}: the paper's are figures of {epochs} epochs and {test:,} test pictures; "
                f"ours are not: {_listed(table.epochs)} epochs, {_listed(table.tests)} pictures."
            )
        parts += [
            f"{table.pair}: {line.title} stopped with {line.stopped} of its seeds."
            for line in table.lines
            if line.stopped
        ]
    return "\n".join(parts)


def _listed(numbers: Sequence[int]) -> str:
    return " and ".join(f"{number:,}" for number in numbers)


def _head(table: Table) -> list[str]:
    head = ["method", "last epoch", "n", f"difference to {table.base} [95 %]", "best"]
    return [*head, "paper"] if table.has_paper else head


def _cells(table: Table, line: Line) -> list[str]:
    last = "stopped" if line.last is None else line.last.text(100, 2)
    n = "0" if line.last is None else str(line.last.n)
    against = "base" if line.method == table.base else line.difference.text(100, 2) if line.difference else "-"
    best = "-" if line.best is None else line.best.text(100, 2)
    row = [line.title, last, n, against, best]
    theirs = "-" if line.paper is None else f"{line.paper[0]:.2f} ± {line.paper[1]:.2f}"
    return [*row, theirs] if table.has_paper else row


def _title(table: Table) -> str:
    teacher = f"teacher {' and '.join(table.teachers)}; " if table.teachers else ""
    seeds = ", ".join(map(str, table.seeds))
    return f"{table.pair} ({table.recipe}; {teacher}{_listed(table.epochs)} epochs; seeds {seeds})"


def _text(table: Table) -> str:
    rows = [_head(table), *(_cells(table, line) for line in table.lines)]
    return f"{_title(table)}\n\n{plain.aligned(rows)}"


def _markdown(table: Table) -> str:
    return f"**{_title(table)}**\n\n{plain.markdown([_head(table), *(_cells(table, line) for line in table.lines)])}"


_TEX = {"%": r"\%", "_": r"\_", "&": r"\&", "±": r"$\pm$", "τ": r"$\tau$", "²": "$^2$", "\N{MINUS SIGN}": "$-$"}


def _latex(table: Table) -> str:
    def tex(text: str) -> str:
        return "".join(_TEX.get(letter, letter) for letter in text)

    head, *rows = [[tex(cell) for cell in row] for row in (_head(table), *(_cells(table, x) for x in table.lines))]
    lines = [" & ".join(row) + r" \\" for row in rows]
    return "\n".join([
        f"% {_title(table)}", rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", r"\toprule",
        " & ".join(head) + r" \\", r"\midrule", *lines, r"\bottomrule", r"\end{tabular}",
    ])  # fmt: skip


def _csv(made: Sequence[Table]) -> str:
    """Figures in %, unrounded; what does not exist is empty, the standard deviation of one seed among it."""
    rows: list[Sequence[object]] = [COLUMNS]
    for table in made:
        for line in table.lines:
            last, best, diff = line.last, line.best, line.difference
            figures = [
                *((None,) * 2 if last is None else (last.mean, last.std)),
                *((None,) * 4 if diff is None else (table.base, diff.mean, diff.low, diff.high)),
                *((None,) * 2 if best is None else (best.mean, best.std)),
            ]
            shown = [x if x is None or isinstance(x, str) else f"{100 * x:.6g}" for x in figures]
            theirs = line.paper or (None, None)
            rows.append([table.recipe, table.pair, line.method, last.n if last else 0, *shown, *theirs])
    return plain.comma_separated(rows)
