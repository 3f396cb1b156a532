"""Surfaces over a plane as a picture: from the side and from above, in colours that the colour-blind tell apart."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plackett.files import replacing
from plackett.report import need
from plackett.report.colours import MUTED

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
LOWEST = "#d55e00"
LEVELS = 14
_DPI = 130
_WIDTH, _HEIGHT = 6.6, 2.75  # inches of a pair


@dataclass(frozen=True)
class Shown:
    """`values` `[N, N]` over `axis` in both directions, lines below the title, and where the lowest value is."""

    title: str
    note: str
    axis: Any
    values: Any
    lowest: tuple[float, float]


def draw(
    shown: Sequence[Shown], out: Path, *, directions: tuple[str, str] = ("α", "β"), middle: str = "start"
) -> list[Path]:
    """`out` with .png and .svg: a surface and its contours side by side, two pairs in a row where there are many.

    `middle` is what lies at (0, 0), in a word or two.
    """
    matplotlib = need("matplotlib", what="The picture")
    figures = need("matplotlib.figure", what="The picture")
    across = 1 if len(shown) < 4 else 2
    down = -(-len(shown) // across)
    with matplotlib.rc_context(STYLE):
        figure = figures.Figure(figsize=(_WIDTH * across, _HEIGHT * down), dpi=_DPI)
        parts = figure.subfigures(down, across, squeeze=False)
        for part, each in zip(parts.flat, shown, strict=False):
            _pair(part, each, directions, middle)
        return save(figure, out)


def save(figure: Any, out: Path) -> list[Path]:
    """The figure as .png and .svg, without the date, so that equal pictures are equal files."""
    paths = []
    for kind, content in (("png", _png(figure)), ("svg", _svg(figure))):
        path = out.parent / f"{out.name}.{kind}"  # the name may hold dots of its own
        with replacing(path) as temporary:
            temporary.write_bytes(content)
        paths.append(path)
    return paths


def _png(figure: Any) -> bytes:
    """In 256 colours, which is a third of the size and looks the same."""
    pillow = need("PIL.Image", what="The picture")
    drawn, packed = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    pillow.open(drawn).convert("RGB").quantize(256, dither=0).save(packed, format="png", optimize=True)
    return packed.getvalue()


def _svg(figure: Any) -> bytes:
    drawn = io.BytesIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return drawn.getvalue()


def _pair(part: Any, each: Shown, directions: tuple[str, str], middle: str) -> None:
    # Places are given, not sought: surfaces in three dimensions report boxes far larger than what they draw.
    part.text(0.02, 0.955, each.title, ha="left", va="center", fontsize=9.5, fontweight="bold")
    part.text(0.02, 0.905, each.note, ha="left", va="top", fontsize=8, color=MUTED, linespacing=1.3)
    side = part.add_axes((-0.01, 0.015, 0.5, 0.82), projection="3d")
    square = (0.15, 0.31, 0.31 * _WIDTH / _HEIGHT)
    above = part.add_axes((0.56, *square))
    scale = part.add_axes((0.885, square[0], 0.014, square[2]))
    _side(side, each)
    filled = above.contourf(each.axis, each.axis, each.values.T, LEVELS, cmap=COLOURS)
    filled.set_rasterized(True)
    above.contour(each.axis, each.axis, each.values.T, LEVELS, colors="#ffffff", linewidths=0.4)
    marks = {"linestyle": "", "markersize": 8, "markerfacecolor": "none"}
    above.plot(0, 0, marker="P", markeredgecolor="#000000", **{**marks, "markerfacecolor": "#ffffff"}, label=middle)
    above.plot(*each.lowest, marker="o", markeredgecolor=LOWEST, markeredgewidth=2, **marks, label="lowest point")
    above.legend(
        loc="lower right", bbox_to_anchor=(1.02, 0.99), ncols=2, frameon=False, fontsize=7.5, handlelength=1,
        handletextpad=0.3, columnspacing=1, borderpad=0.2,
    )  # fmt: skip
    bar = part.colorbar(filled, cax=scale)
    bar.set_label("loss")
    bar.locator = need("matplotlib.ticker").MaxNLocator(6)
    bar.update_ticks()
    above.set_aspect("equal")
    for axes in (side, above):
        axes.set_xlabel(directions[0], labelpad=-2 if axes is side else 1)
        axes.set_ylabel(directions[1], labelpad=-2 if axes is side else 0)


def _side(side: Any, each: Shown) -> None:
    x, y = need("numpy").meshgrid(each.axis, each.axis, indexing="ij")
    stride = max(1, len(each.axis) // 25)
    low, high = float(each.values.min()), float(each.values.max())
    floor = low - 0.35 * (high - low)
    surface = side.plot_surface(
        x, y, each.values, cmap=COLOURS, rstride=stride, cstride=stride, linewidth=0.25, edgecolor="#ffffff66",
        antialiased=True, shade=False,
    )  # fmt: skip
    surface.set_rasterized(True)  # thousands of small polygons otherwise
    side.contour(x, y, each.values, LEVELS, cmap=COLOURS, offset=floor, linewidths=0.7)
    side.set_zlim(floor, high)
    side.locator_params(axis="z", nbins=6)
    side.set_zticks([tick for tick in side.get_zticks() if low - 0.02 * (high - low) <= tick <= high])
    side.set_zlabel("loss", labelpad=-3)
    side.view_init(elev=24, azim=-58)
    side.tick_params(pad=-3)
    side.tick_params(axis="z", pad=0)
    for axis in (side.xaxis, side.yaxis, side.zaxis):
        axis.pane.set_facecolor("#ffffff")
        axis.pane.set_edgecolor("#d7dbe0")
    side.grid(visible=False)
