"""What the report needs from others."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from plackett.errors import MissingExtraError, missing_extra


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
