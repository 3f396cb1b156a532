"""Surfaces -> rows: what was measured of each, and every point of the grid."""

from __future__ import annotations

from collections.abc import Sequence

from plackett.analysis.convexity import Surface


def measured(titles: Sequence[str], found: Sequence[Surface]) -> list[list[str]]:
    """What a person reads."""
    rows = [["loss", "smallest eigenvalue", "in the middle", "largest", "segments above their ends", "lowest at", ""]]
    for title, surface in zip(titles, found, strict=True):
        c, (a, b) = surface.convexity, surface.lowest
        share = f"{100 * c.share:.2f} % of {c.segments:,}"
        rows.append(
            [
                title,
                f"{c.smallest:+.3g}",
                f"{c.middle:+.3g}",
                f"{c.largest:.3g}",
                share,
                f"({a:.2g}, {b:.2g})",
                note(surface),
            ]
        )
    return rows


def note(surface: Surface) -> str:
    if not surface.convexity.told:
        return "cannot be told"
    return "convex here" if surface.convexity.convex else "not convex"


def caption(surface: Surface) -> str:
    """Below the name of a picture: what the picture cannot show."""
    c = surface.convexity
    smallest = f"{c.smallest:+.2g}".replace("-", "\N{MINUS SIGN}")
    return f"{note(surface)}: smallest eigenvalue {smallest},\n{100 * c.share:.3g} % of segments above their ends"


def tolerances(found: Sequence[Surface], *, whole: bool) -> str:
    """What counts as 0, and what the figures are of."""
    eigen = max(surface.convexity.eigenvalue_tolerance for surface in found)
    segment = max(surface.convexity.segment_tolerance for surface in found)
    what = "of the loss over student logits" if whole else "of the loss over weights, which no loss makes convex"
    return (
        f"Eigenvalues are of the Hessian {what}, by central differences at every point of the grid; above -{eigen:.1g} "
        f"they count as at least 0. A segment lies above its ends where its middle is higher than their mean by more "
        f"than {segment:.1g}."
    )


def figures(titles: Sequence[str], found: Sequence[Surface]) -> list[Sequence[object]]:
    """What was measured, unrounded, for a file."""
    rows: list[Sequence[object]] = [(
        "loss", "smallest_eigenvalue", "at_alpha", "at_beta", "in_the_middle", "largest_eigenvalue",
        "eigenvalue_tolerance", "segments", "violating", "worst", "segment_tolerance", "lowest_alpha", "lowest_beta",
        "convex",
    )]  # fmt: skip
    for title, surface in zip(titles, found, strict=True):
        c = surface.convexity
        rows.append((
            title, f"{c.smallest:.9g}", *(f"{x:.6g}" for x in c.where), f"{c.middle:.9g}",
            f"{c.largest:.9g}",
            f"{c.eigenvalue_tolerance:.3g}", c.segments, c.violating, f"{c.worst:.6g}", f"{c.segment_tolerance:.3g}",
            *(f"{x:.6g}" for x in surface.lowest), c.convex,
        ))  # fmt: skip
    return rows


def grid(titles: Sequence[str], found: Sequence[Surface]) -> list[Sequence[object]]:
    """A line a point: where it is, the loss, and the smaller eigenvalue of its Hessian there."""
    rows: list[Sequence[object]] = [("loss", "alpha", "beta", "value", "smallest_eigenvalue")]
    for title, surface in zip(titles, found, strict=True):
        axis = [f"{x:.6g}" for x in surface.axis.tolist()]
        for a, values, low in zip(axis, surface.values.tolist(), surface.curvature.tolist(), strict=True):
            rows += [(title, a, b, f"{v:.9g}", f"{e:.6g}") for b, v, e in zip(axis, values, low, strict=True)]
    return rows
