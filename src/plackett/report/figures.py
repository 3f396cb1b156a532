"""How a figure looks: drawn by matplotlib, coloured by the page, so that one drawing serves light, dark and print."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from plackett.report.colours import INK, LINE, MUTED, PAPER, in_page
from plackett.report.needs import need

PIXELS_AN_INCH = 192
EM = 0.62 / 72  # inches that a letter of one point takes, on average and on the safe side

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "plackett",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.labelcolor": MUTED,
    "axes.labelsize": 8.5,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlepad": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
}


@dataclass(frozen=True)
class Plate:
    """A finished drawing: inline in the page, and as files beside it. `name` becomes a file's."""

    name: str
    description: str
    drawn: str
    figure: Any

    def __html__(self) -> str:
        """An inline element that says `description` to one who does not see it."""
        markupsafe = need("markupsafe")
        body = in_page(self.drawn)
        # Names must be unique on a page that holds many drawings, and the same whenever it is made.
        name = hashlib.blake2b((self.description + body).encode(), digest_size=5).hexdigest()
        body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>f{name}-", body)
        viewbox = re.search(r'viewBox="[^"]*"', body)
        inside = body[body.index(">") + 1 :]
        space = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        return (
            f'<svg role="img" aria-label="{markupsafe.escape(self.description)}" '
            f"{viewbox[0] if viewbox else ''} {space}>{inside}"
        )

    def svg(self) -> bytes:
        """A file of its own, in light colours on paper."""
        head, _, inside = self.drawn.partition(">")
        paper = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
        title = f"<title>{need('markupsafe').escape(self.description)}</title>"
        return f'<?xml version="1.0" encoding="utf-8"?>\n{head}>{title}{paper}{inside}'.encode("utf-8", "replace")

    def png(self) -> bytes:
        buffer = io.BytesIO()
        with _whatever_the_letters():
            self.figure.savefig(
                buffer, format="png", dpi=PIXELS_AN_INCH, facecolor=PAPER, metadata={"Software": None},
                pil_kwargs={"compress_level": 4},
            )  # fmt: skip
        return buffer.getvalue()


@contextmanager
def _whatever_the_letters() -> Iterator[None]:
    """Names of classes may have letters that the font lacks: a page draws them with another, a file has boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


class Drawing:
    """One figure with one pair of axes, of so many inches, with room on its four sides; `plate` ends it.

    The room is given, not sought: matplotlib's search for it would take longer than all the rest.

    >>> with Drawing(2, 1) as drawing:
    ...     _ = drawing.axes.plot([0, 1])
    >>> drawing.plate("line", "A line from 0 to 1.").__html__()[:49]
    '<svg role="img" aria-label="A line from 0 to 1." '
    """

    def __init__(
        self,
        width: float,
        height: float,
        left: float = 0.45,
        right: float = 0.12,
        top: float = 0.32,
        bottom: float = 0.45,
    ) -> None:
        matplotlib = need("matplotlib")
        self._style = matplotlib.rc_context(_STYLE)
        self._size = (width, height)
        self._sides = {
            "left": left / width, "right": 1 - right / width, "bottom": bottom / height, "top": 1 - top / height,
        }  # fmt: skip

    def __enter__(self) -> Drawing:
        self._style.__enter__()
        # The figure alone, without pyplot: no window system is asked for and nothing is kept.
        self.figure = need("matplotlib.figure").Figure(figsize=self._size)
        self.figure.subplots_adjust(**self._sides)
        self.axes = self.figure.add_subplot()
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            buffer = io.StringIO()
            with _whatever_the_letters():
                self.figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
            text = buffer.getvalue()
            self._drawn = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
        self._style.__exit__(None, None, None)

    def plate(self, name: str, description: str) -> Plate:
        """The drawing, `description` being what it says to one who does not see it."""
        return Plate(name, description, self._drawn, self.figure)


def room(labels: Iterable[str], size: float = 9) -> float:
    """Inches for the longest of these labels, with a little air."""
    return 0.16 + EM * size * max((len(label) for label in labels), default=0)


def short(label: str, most: int = 24) -> str:
    """
    >>> short("a rather long name of a method", 16)
    'a rather long n…'
    """
    return label if len(label) <= most else f"{label[: most - 1]}…"
