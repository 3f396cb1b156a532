"""What was measured of networks, in words: side by side, one alone, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from plackett.evaluation.evaluated import Evaluated
    from plackett.intervals import Share


class Row(NamedTuple):
    """`text` of one network; `value`, where a ratio of two is worth saying."""

    title: str
    text: Callable[[Evaluated], str]
    value: Callable[[Evaluated], float] | None = None


def side_by_side(found: Sequence[Evaluated]) -> list[list[str]]:
    """A row a figure, a column a network; of two the last column says how many times the second is the first."""
    ratio = len(found) == 2
    head = ["", *(each.name for each in found), *([f"{found[1].name} / {found[0].name}"] if ratio else [])]
    rows = [head]
    for row in _rows(found):
        texts = [row.text(each) for each in found]
        if ratio:
            value = row.value
            texts.append("" if value is None else f"{value(found[1]) / value(found[0]):.3g} x")
        rows.append([row.title, *texts])
    return rows


def alone(found: Evaluated) -> dict[str, str]:
    """The figures of one network by what they are called."""
    return {row.title: row.text(found) for row in _rows([found])}


def _rows(found: Sequence[Evaluated]) -> list[Row]:
    rows = [Row("network", lambda e: e.spec), Row("pictures, pixels a side", lambda e: str(e.size))]
    if found[0].quality is not None:
        rows.append(Row("top-1 accuracy, % [95 %]", lambda e: _share(_quality(e).top1)))
        if found[0].quality.top5 is not None:
            rows.append(Row("top-5 accuracy, % [95 %]", lambda e: _share(_quality(e).top5)))
        rows.append(Row("expected calibration error, %", lambda e: f"{100 * _quality(e).ece:.1f}"))
        if found[0].quality.agreement is not None:
            rows.append(Row("same first class as teacher, %", lambda e: _share(_quality(e).agreement)))
    rows += [
        Row("parameters", lambda e: f"{e.cost.parameters:,}", lambda e: e.cost.parameters),
        Row("million MACs a picture", lambda e: _figure(e.cost.macs / 1e6), lambda e: e.cost.macs),
        Row("weights, MiB", lambda e: _figure(e.cost.weights_mib), lambda e: e.cost.weights_mib),
    ]
    batches = list(found[0].cost.latency)
    rows += [_activations(batch) for batch in batches]
    rows += [_latency(batch) for batch in batches]
    if batches:
        rows.append(_throughput(max(batches)))
    return rows


def _activations(batch: int) -> Row:
    return Row(
        f"activations, MiB, batch {batch}",
        lambda e: _figure(e.cost.activations_mib[batch]),
        lambda e: e.cost.activations_mib[batch],
    )


def _latency(batch: int) -> Row:
    def text(e: Evaluated) -> str:
        time = e.cost.latency[batch]
        return f"{_figure(time.median_ms)} [{_figure(time.low_ms)}, {_figure(time.high_ms)}]"

    return Row(f"ms, batch {batch} [middle half]", text, lambda e: e.cost.latency[batch].median_ms)


def _throughput(batch: int) -> Row:
    def value(e: Evaluated) -> float:
        return 1000 * batch / e.cost.latency[batch].median_ms

    return Row(f"pictures a second, batch {batch}", lambda e: f"{_rounded(value(e)):,}", value)


def document(found: Sequence[Evaluated], surroundings: dict[str, Any]) -> dict[str, Any]:
    """Everything as JSON has it."""
    return {**surroundings, "networks": [each.as_dict() for each in found]}


def _quality(e: Evaluated) -> Any:
    return e.quality


def _share(share: Share | None) -> str:
    return "-" if share is None else f"{100 * share.value:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def _figure(value: float) -> str:
    """
    >>> _figure(0.01234), _figure(1.234), _figure(123.45)
    ('0.0123', '1.23', '123')
    """
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _rounded(value: float) -> int:
    """
    >>> _rounded(123456.0)
    123000
    """
    return int(float(f"{value:.3g}"))
