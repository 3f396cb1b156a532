"""`plackett recipes`: what can be carried out by name, to be read and to be changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from plackett.cli import ready
from plackett.cli.letters import spell
from plackett.errors import InputError, did_you_mean

ACTIONS = ("list", "show", "copy")


def recipes(
    action: Annotated[str, typer.Argument(metavar="list|show|copy", help="What to do.")] = "list",
    name: Annotated[str | None, typer.Argument(help="Which recipe, to show or to copy.")] = None,
    to: Annotated[Path | None, typer.Argument(help="The file to copy it to. [default: NAME.yaml here]")] = None,
) -> None:
    """The recipes of this package: their claim, their cost and their command; show one, or copy it to change it."""
    if action not in ACTIONS:
        raise InputError(f"plackett recipes cannot {action!r}; {did_you_mean(action, ACTIONS)}.")
    if action == "list":
        print(spell("\n\n".join(_listed()), sys.stdout.encoding or "utf-8"))
        return
    if name is None:
        raise InputError(f"Say which recipe to {action}: plackett recipes {action} NAME; {_choices('')}.")
    content = _text(name)
    if action == "show":
        print(spell(content, sys.stdout.encoding or "utf-8"), end="")
        return
    path = to or Path(f"{name}.yaml")
    ready.file(path, "the last argument")
    if path.exists():
        raise InputError(f"{path} is there already: name another file, or remove it.")
    from plackett.experiments.records import write_text

    write_text(path, content)
    print(f"{path}: change it, then: {_command(name, path)}")


def _all() -> dict[str, str]:
    """By name the kind of every recipe."""
    from plackett.distilling import asked
    from plackett.experiments import recipes as experiments

    return {**dict.fromkeys(asked.SHIPPED, "distill"), **dict.fromkeys(experiments.SHIPPED, "compare")}


def _text(name: str) -> str:
    from plackett.distilling import asked
    from plackett.experiments.recipes import shipped

    known = _all()
    if name not in known:
        raise InputError(f"There is no recipe {name!r}; {_choices(name)}.")
    return asked.text(name) if known[name] == "distill" else shipped(f"{name}.yaml")


def _choices(name: str) -> str:
    return did_you_mean(name, _all())


def _command(name: str, path: Path) -> str:
    return f"plackett distill --recipe {path}" if _all()[name] == "distill" else f"plackett compare {path}"


def _listed() -> list[str]:
    import textwrap

    found = []
    for name in _all():
        head = [line.lstrip("# ").rstrip() for line in _text(name).split("\n\n")[0].splitlines()]
        claim = " ".join(head).split("Cost:")[0].removeprefix("Claim:").split()
        found.append(f"{name}\n{textwrap.fill(' '.join(claim), 96, initial_indent='    ', subsequent_indent='    ')}")
    return found
