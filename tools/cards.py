"""Writes `docs/losses.md`: the card of every loss, the same shape each."""

from __future__ import annotations

import pathlib

from plackett.losses.registry import LOSSES, Loss

PATH = pathlib.Path(__file__).parent.parent / "docs" / "losses.md"

HEAD = """# The losses

Every loss, with the same card: what it computes, where it comes from, what its authors set, and where we differ.
The cards live beside the code (`src/plackett/losses/`), and this page is written from them by `make stubs`;
`plackett losses NAME` prints one.

s are the student's logits, t the teacher's, y the label, tau a temperature.

"""


def text() -> str:
    """The page as it should be."""
    logits = [entry for entry in LOSSES.values() if not entry.features]
    features = [entry for entry in LOSSES.values() if entry.features]
    rows = [HEAD, "## On logits\n", *map(_card, _by_name(logits)), "## On features\n"]
    rows += [
        "A feature loss takes one feature map or embedding `[N, ...]` of student and teacher, or a list of them.\n",
        *map(_card, _by_name(features)),
    ]
    return "\n".join(rows).rstrip() + "\n"


def _by_name(entries: list[Loss]) -> list[Loss]:
    return sorted(entries, key=lambda entry: (entry.name != "pld", entry.name))


def _card(entry: Loss) -> str:
    card = entry.card
    function = f"`plackett.functional.{entry.function.__name__}`, " if entry.function else ""
    defaults = [f"{n}={p.default!r}" for n, p in entry.options.items() if p.default is not p.empty]
    rows = [
        f"### {card.title}",
        "",
        f"`{entry.name}`: {function}`plackett.{entry.module_name}`",
        "",
        "```text",
        _lines(card.equation, "\n"),
        "```",
        "",
        f"- **Paper**: {_lines(card.paper)}",
        f"- **Published defaults**: {_lines(card.defaults)}",
        *([f"- **Reads layers**: {_lines(card.layers)}"] if card.layers else []),
        f"- **Our deviations**: {_lines(card.deviations)}",
        f"- **Our defaults**: `{', '.join(defaults)}`",
        "",
    ]
    return "\n".join(rows)


def _lines(text: str, glue: str = " ") -> str:
    return glue.join(line.strip() for line in text.strip().splitlines())


if __name__ == "__main__":
    PATH.write_text(text())
