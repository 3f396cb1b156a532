"""How a figure looks: drawn by matplotlib, coloured by the page, so that one drawing serves light, dark and print."""

from __future__ import annotations

import hashlib
import io
import re
from typing import Any

from plackett.report.page import need

# Drawn in these colours, which the page's own take the place of.
INK, MUTED, LINE, ACCENT, PAPER = "#010101", "#020202", "#030303", "#040404", "#050505"
_VARIABLES = {INK: "--ink", MUTED: "--muted", LINE: "--line", ACCENT: "--accent", PAPER: "--paper"}

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "plackett",
    "text.parse_math": False,
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
    "lines.solid_capstyle": "round",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
}


class Drawing:
    """One figure with one pair of axes, of so many inches; `svg` ends it.

    >>> with Drawing(2, 1) as drawing:
    ...     _ = drawing.axes.plot([0, 1], color=ACCENT)
    >>> drawing.svg("A line from 0 to 1.").startswith('<svg role="img" aria-label="A line from 0 to 1."')
    True
    """

    def __init__(self, width: float, height: float) -> None:
        matplotlib = need("matplotlib")
        self._style = matplotlib.rc_context(_STYLE)
        self._size = (width, height)

    def __enter__(self) -> Drawing:
        self._style.__enter__()
        # The figure alone, without pyplot: no window system is asked for and nothing is kept.
        self.figure = need("matplotlib.figure").Figure(figsize=self._size, layout="constrained")
        self.axes = self.figure.add_subplot()
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            buffer = io.StringIO()
            self.figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
            self._text = buffer.getvalue()
        self._style.__exit__(None, None, None)

    def svg(self, description: str) -> Any:
        """The drawing as an inline element, `description` being what it says to one who does not see it."""
        markupsafe = need("markupsafe")
        body = self._text[self._text.index("<svg") :]
        body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
        for colour, variable in _VARIABLES.items():
            body = body.replace(colour, f"var({variable})")
        # Names must be unique on a page that holds many drawings, and the same whenever it is made.
        name = hashlib.blake2b((description + body).encode(), digest_size=5).hexdigest()
        body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>f{name}-", body)
        label = markupsafe.escape(description)
        viewbox = re.search(r'viewBox="[^"]*"', body)
        inside = body[body.index(">") + 1 :]
        space = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        return markupsafe.Markup(
            f'<svg role="img" aria-label="{label}" {viewbox[0] if viewbox else ""} {space}>{inside}'
        )
