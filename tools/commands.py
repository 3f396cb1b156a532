"""Writes README's table of commands from the commands themselves, each with the page that shows it."""

from __future__ import annotations

import pathlib
import re

from plackett.cli.app import app
from tools.between import between

ROOT = pathlib.Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"


def text() -> str:
    """README as it should be."""
    head = ["| command | what it does | page |", "|---|---|---|"]
    rows = [f"| `plackett {name}` | {line} | {_page(name)} |" for name, line in commands().items()]
    return between(README.read_text(), "commands", "\n".join([*head, *rows]))


def commands() -> dict[str, str]:
    """Every command and the first paragraph of its help, as one line."""
    found = {}
    for command in app.registered_commands:
        assert command.name is not None
        found[command.name] = " ".join((command.callback.__doc__ or "").split("\n\n")[0].split())
    return dict(sorted(found.items()))


def _page(name: str) -> str:
    """The page whose blocks call the command most often."""
    call = re.compile(rf"^plackett {name}\b", re.MULTILINE)
    calls = {page: len(call.findall(page.read_text())) for page in sorted(DOCS.glob("*.md"))}
    page = max(calls, key=lambda page: calls[page])
    if not calls[page]:
        return ""
    title = re.search(r"^# (.*)$", page.read_text(), re.MULTILINE)
    assert title is not None, f"{page.name} has no title"
    return f"[{title[1]}](docs/{page.name})"


if __name__ == "__main__":
    README.write_text(text())
