"""The page: its sections in order, under one style."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import plackett
from plackett.errors import InputError, MissingExtraError, missing_extra
from plackett.experiments.records import write_text
from plackett.experiments.study import Study, read_study

# Each is a module of `sections` with `context(study)` (None: nothing to show) and a template of the same name.
SECTIONS = ("verdict", "problems", "comparison", "seeds", "training", "calibration", "teacher", "reproduce")


def write(folder: Path, out: Path | None = None) -> Path:
    """Renders the runs in `folder` into `out`, by default `report.html` beside them, and returns its path."""
    path = out or folder / "report.html"
    if path.is_dir():
        raise InputError(f"{path} is a folder: the report needs the name of a file, such as {path / 'report.html'}.")
    write_text(path, render(read_study(folder)))
    return path


def render(study: Study) -> str:
    """The whole page as text."""
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
    shown: list[dict[str, Any]] = []
    for name in SECTIONS:
        section = import_module(f"plackett.report.sections.{name}")
        context = section.context(study)
        if context is not None:
            template = environment.get_template(f"sections/{name}.html")
            shown.append({"id": name, "title": section.TITLE, "body": template.render(study=study, **context)})
    page: str = environment.get_template("page.html").render(
        title=study.record.title,
        sections=[{**section, "body": need("markupsafe").Markup(section["body"])} for section in shown],
        version=plackett.__version__,
    )
    return page


def need(module: str, extra: str = "report", what: str = "The report") -> ModuleType:
    """An optional module of an extra, or the sentence that says how to get what is missing: it, or what it imports."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing_extra((error.name or module).partition(".")[0], extra, what) from error
    except ImportError as error:
        raise MissingExtraError(
            f"{what} needs {module!r}, which cannot be imported ({error}): pip install --upgrade 'plackett[{extra}]'."
        ) from error


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
