"""What can be known before the work begins is said before it begins, and before torch is loaded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from plackett.errors import InputError, missing_extra

# What an extra's packages import in their turn counts too: scikit-learn may be there and SciPy not.
EXTRAS = {
    "demo": ("sklearn", "scipy", "joblib", "threadpoolctl"),
    "report": ("jinja2", "markupsafe", "matplotlib"),
    "tracking": ("tensorboard",),
    "tune": ("optuna", "sqlalchemy"),
    "export": ("onnx", "onnxscript", "onnxruntime"),
}


def extras(what: str, names: Sequence[str]) -> None:
    """`what` needs the modules of these extras."""
    for name in names:
        if (module := lacks(name)) is not None:
            raise missing_extra(module, name, what)


def lacks(name: str) -> str | None:
    """The first module of an extra that is not there."""
    return next((module for module in EXTRAS[name] if not _found(module)), None)


def _found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # an import hook that refuses it, or a module without a specification
        return False


def folder(out: Path, option: str = "--out") -> None:
    """Files can be written below `out`, which need not exist yet."""
    there = next((path for path in (out, *out.parents) if os.path.lexists(path)), Path())
    if not there.is_dir():
        raise InputError(f"{there} is not a folder, so nothing can be written to {out}: name a folder with {option}.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{there} may not be written to: name another folder with {option}.")


def file(out: Path, option: str = "--out") -> None:
    """A file can be written at `out`, whose folder need not exist yet."""
    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file with {option}, such as {out / 'report.html'}.")
    folder(out.parent, option)
