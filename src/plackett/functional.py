"""Every loss as a function of tensors: checks what it is given, picks the implementation, computes nothing itself.

>>> import torch
>>> student, teacher = torch.zeros(2, 3), torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
>>> kd(student, teacher, temperature=1.0)
tensor(0.4991)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plackett import checks
from plackett.errors import UnknownOptionError, did_you_mean
from plackett.kernels import pick
from plackett.losses.registry import LOSSES, TENSORS, Loss
from plackett.losses.standardize import standardize as standardize
from plackett.vocabulary import LinearTeacher as LinearTeacher
from plackett.vocabulary import SparseTeacher as SparseTeacher
from plackett.vocabulary import fused_linear_pld as fused_linear_pld
from plackett.vocabulary import sparse_pld as sparse_pld

if TYPE_CHECKING:
    from plackett.losses.decoupled import dkd as dkd
    from plackett.losses.divergence import kd as kd
    from plackett.losses.feature import at as at
    from plackett.losses.feature import fitnet as fitnet
    from plackett.losses.feature import pkt as pkt
    from plackett.losses.feature import rkd as rkd
    from plackett.losses.feature import sp as sp
    from plackett.losses.plackett_luce import listmle as listmle
    from plackett.losses.plackett_luce import pld as pld
    from plackett.losses.plackett_luce import position_listmle as position_listmle
    from plackett.losses.relational import dist as dist
    from plackett.losses.supervised import cross_entropy as cross_entropy


def _public(entry: Loss) -> Callable[..., Any]:
    """The loss behind its checks, with its own signature and docstring."""
    function = entry.function
    assert function is not None
    signature = inspect.signature(function)
    _ = entry.types  # read off the annotations now, not while somebody's graph is traced
    positional = tuple(n for n, p in signature.parameters.items() if p.kind is not p.KEYWORD_ONLY)

    @functools.wraps(function)
    def public(*args: Any, **options: Any) -> Any:
        if len(args) > len(positional):
            expected = ", ".join(positional)
            raise UnknownOptionError(
                f"{entry.called} takes ({expected}) by position, the rest by name; got {len(args)}."
            )
        given = dict(zip(positional, args, strict=False))
        for name in TENSORS:
            if name in options:
                if name in given:
                    raise UnknownOptionError(f"{entry.called} got {name} twice: by position and by name.")
                given[name] = options.pop(name)
        for name in options:
            if name not in signature.parameters:
                known = [n for n in signature.parameters if n not in positional]
                raise UnknownOptionError(f"{entry.called} has no option {name!r}; {did_you_mean(name, known)}.")
        checks.call(entry, given, options)
        if "impl" in entry.options and isinstance(options.get("impl", "auto"), str):
            options["impl"] = pick(options.get("impl", "auto"), given["student"])
        return function(**given, **options)

    return public


for _entry in LOSSES.values():
    if _entry.function is not None:
        globals()[_entry.function.__name__] = _public(_entry)
