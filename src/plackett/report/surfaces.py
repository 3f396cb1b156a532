"""Surfaces over a plane as a picture: from the side and from above, in colours that the colour-blind tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plackett.files import replacing
from plackett.report import need

# On a paper of their own: a picture in a page does not know whether the page is light or dark.
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "plackett",
    "text.parse_math": False,
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.titlelocation": "left",
    "figure.facecolor": "#ffffff",
    "savefig.facecolor": "#ffffff",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}
COLOURS = "cividis"
_DPI = 110


@dataclass(frozen=True)
class Shown:
    """`values` `[N, N]` over `axis` in both directions, a line below the title, and where the lowest value is."""

    title: str
    note: str
    axis: Any
    values: Any
    lowest: tuple[float, float]


def draw(shown: Sequence[Shown], out: Path, *, directions: tuple[str, str] = ("α", "β")) -> list[Path]:
    """`out` with .png and .svg: a surface and its contours side by side, two pairs in a row where there are many."""
    matplotlib = need("matplotlib", what="The picture")
    figures = need("matplotlib.figure", what="The picture")
    across = 1 if len(shown) < 4 else 2
    down = -(-len(shown) // across)
    with matplotlib.rc_context(STYLE):
        figure = figures.Figure(figsize=(6.2 * across, 2.7 * down), layout="constrained", dpi=_DPI)
        parts = figure.subfigures(down, across, squeeze=False)
        for part, each in zip(parts.flat, shown, strict=False):
            _pair(part, each, directions)
        return save(figure, out)


def save(figure: Any, out: Path) -> list[Path]:
    """The figure as .png and .svg, without the date, so that equal pictures are equal files."""
    paths = []
    for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        path = out.parent / f"{out.name}.{kind}"  # the name may hold dots of its own
        with replacing(path) as temporary:
            figure.savefig(temporary, format=kind, metadata=metadata)
        paths.append(path)
    return paths


def _pair(part: Any, each: Shown, directions: tuple[str, str]) -> None:
    part.suptitle(f"{each.title}: {each.note}", x=0.01, ha="left", fontsize=9)
    side = part.add_subplot(1, 2, 1, projection="3d")
    above = part.add_subplot(1, 2, 2)
    x, y = need("numpy").meshgrid(each.axis, each.axis, indexing="ij")
    stride = max(1, len(each.axis) // 50)
    surface = side.plot_surface(
        x, y, each.values, cmap=COLOURS, rstride=stride, cstride=stride, linewidth=0, antialiased=False
    )
    surface.set_rasterized(True)  # thousands of small polygons otherwise
    filled = above.contourf(x, y, each.values, 14, cmap=COLOURS)
    filled.set_rasterized(True)
    above.contour(x, y, each.values, 14, colors="#ffffff", linewidths=0.4)
    above.plot(0, 0, marker="+", color="#ffffff", markersize=8, markeredgewidth=1.6, linestyle="")
    above.plot(
        *each.lowest, marker="o", markerfacecolor="none", markeredgecolor="#d55e00", markersize=7, markeredgewidth=1.6
    )
    above.set_title("+ start, o lowest point", fontsize=7, loc="right")
    part.colorbar(filled, ax=above, shrink=0.85)
    above.set_aspect("equal")
    for axes in (side, above):
        axes.set_xlabel(directions[0], labelpad=0)
        axes.set_ylabel(directions[1], labelpad=0)
    side.tick_params(pad=-2)
