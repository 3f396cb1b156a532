"""What goes wrong, said in one sentence: what, where, and what to do."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable


class PlackettError(Exception):
    """Base of every error this package raises on purpose; a command ends with its sentence and exit code 2."""


class InputError(PlackettError, ValueError):
    """A person gave something that does not fit; the message says what, where and what to do."""


class UnknownOptionError(InputError, TypeError):
    """An option that does not exist, or that was given twice; Python's own kind of error, with a suggestion."""


class UnfinishedError(PlackettError):
    """Work that was stopped on purpose before its end; what is done is saved, and the same command goes on."""


class MissingExtraError(PlackettError, ImportError):
    """A command needs an optional dependency that is not installed."""


def did_you_mean(word: object, choices: Iterable[str]) -> str:
    """The end of a sentence about an unknown `word`: a suggestion where one is close, and all that there is.

    >>> did_you_mean("techer", ["teacher", "uniform"])
    "did you mean 'teacher'? (choices: teacher, uniform)"
    """
    known = sorted(choices)
    close = [] if _is_traced() else difflib.get_close_matches(str(word), known, n=1)
    listing = f"choices: {', '.join(known)}"
    return f"did you mean {close[0]!r}? ({listing})" if close else listing


def _is_traced() -> bool:
    """Whether the compiler reads this, which cannot follow difflib; torch is asked only where somebody has it."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_compiling())


def missing_extra(module: str, extra: str, what: str) -> MissingExtraError:
    """The sentence for a feature whose optional dependency is absent.

    >>> str(missing_extra("sklearn", "demo", "plackett demo"))
    "plackett demo needs 'sklearn', which is not installed: pip install 'plackett[demo]'."
    """
    return MissingExtraError(f"{what} needs {module!r}, which is not installed: pip install 'plackett[{extra}]'.")
