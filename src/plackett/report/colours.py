"""The page's colours, light and dark; every one that letters are written in has a contrast of at least 4.5 to paper.

`accent` and the series differ in lightness as well as in hue, and nothing is told apart by colour alone.
"""

from __future__ import annotations

LIGHT = {
    "paper": "#ffffff", "ink": "#16191d", "muted": "#5c6670", "line": "#dfe3e8", "accent": "#0f5fa8", "wash": "#f3f7fb",
    "second": "#a34d00", "third": "#00735c", "fourth": "#7d3c98", "shade": "#16191d55",
}  # fmt: skip
DARK = {
    "paper": "#14171b", "ink": "#e9edf1", "muted": "#9aa5b1", "line": "#30373f", "accent": "#6db6ff", "wash": "#1a2129",
    "second": "#f2a65a", "third": "#55cfae", "fourth": "#d3a4e6", "shade": "#e9edf155",
}  # fmt: skip
PRINT = {**LIGHT, "ink": "#000000", "muted": "#4a4f55", "line": "#cfd4da", "shade": "transparent"}

INK, MUTED, LINE, ACCENT, PAPER, WASH = (LIGHT[name] for name in ("ink", "muted", "line", "accent", "paper", "wash"))
SERIES = (ACCENT, LIGHT["second"], LIGHT["third"], LIGHT["fourth"])


def variables(colours: dict[str, str]) -> str:
    """
    >>> variables({"paper": "#ffffff", "ink": "#000000"})
    '--paper: #ffffff; --ink: #000000;'
    """
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def in_page(drawing: str) -> str:
    """A drawing in the light colours, coloured by the page instead: one serves light, dark and print."""
    for name, value in LIGHT.items():
        drawing = drawing.replace(value, f"var(--{name})")
    return drawing
