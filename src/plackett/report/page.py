"""The page: its sections in order, under one style."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import plackett
from plackett.errors import InputError
from plackett.experiments.records import write_text
from plackett.experiments.study import Study, survey
from plackett.report import colours, files
from plackett.report.material import MOST_CASES, gather
from plackett.report.needs import need

# Each is a module of `sections` with `context(material)` (None: nothing to show) and a template of the same name.
SECTIONS = (
    "verdict", "problems", "comparison", "training", "teacher", "transfer", "calibration", "mistakes", "tradeoff",
    "cost", "reproduce",
)  # fmt: skip


def write(folders: Path | Sequence[Path], out: Path | None = None, *, beside: bool = True) -> Path:
    """Renders the runs in these folders into `out`, by default `report.html` beside them, and returns its path.

    `beside`: every plot and table as files of their own in a folder beside the page.
    """
    study = survey(*([folders] if isinstance(folders, Path) else folders))
    path = out or study.folder / "report.html"
    if path.is_dir():
        raise InputError(f"{path} is a folder: the report needs the name of a file, such as {path / 'report.html'}.")
    text, shown = _made(study, f"{path.stem}-files" if beside else None)
    if beside:
        files.write(path.with_name(f"{path.stem}-files"), shown)
    write_text(path, text)
    return path


def render(study: Study) -> str:
    """The whole page as text."""
    return _made(study, None)[0]


def _made(study: Study, beside: str | None) -> tuple[str, dict[str, Any]]:
    """The page, and what each section shows."""
    environment = _environment()
    material = gather(study)
    shown: dict[str, Any] = {}
    sections: list[dict[str, Any]] = []
    for name in SECTIONS:
        section = import_module(f"plackett.report.sections.{name}")
        context = section.context(material)
        if context is not None:
            shown[name] = context
            body = environment.get_template(f"sections/{name}.html").render(material=material, study=study, **context)
            sections.append({"id": name, "title": section.TITLE, "body": need("markupsafe").Markup(body)})
    more = len(material.cases) - MOST_CASES
    page: str = environment.get_template("page.html").render(
        title=study.record.title,
        sections=sections,
        version=plackett.__version__,
        beside=beside,
        more=(len(material.cases), MOST_CASES) if more > 0 else None,
        light=colours.variables(colours.LIGHT),
        dark=colours.variables(colours.DARK),
        printed=colours.variables(colours.PRINT),
    )
    return page.encode("utf-8", "replace").decode(), shown  # a folder's name may be no text


def _environment() -> Any:
    jinja2 = need("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["percent"] = percent
    environment.filters["unbroken"] = unbroken
    return environment


def percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f}"


def unbroken(figure: str) -> str:
    """A figure that no line breaks within its number or its brackets: 89.6 | (n = 1).

    >>> unbroken("89.6 (n = 1)"), unbroken("89.6 ± 0.4")
    ('89.6 (n\xa0=\xa01)', '89.6\xa0±\xa00.4')
    """
    return figure.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}").replace(
        " ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
    )
