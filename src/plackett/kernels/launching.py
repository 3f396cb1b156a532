"""How a kernel is started: on its tensors' device, at as little of the host's time as Triton allows."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor

Launch = TypeVar("Launch", bound=Callable[..., Any])

_started: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] = {}
_AT_MOST = 4096
_remembers = True


def start(kernel: Any, programs: int, *arguments: Any, **options: Any) -> None:
    """`kernel[(programs,)](*arguments, **options)`: the constants (all of the signature's last parameters) by name.

    Triton finds the compiled kernel by looking at every argument and building two keys; at 100 classes that takes
    longer than the kernel. What it looks at (dtypes, addresses mod 16, integers) is one key here.
    """
    key = (kernel, *map(_seen, arguments), *options.items())
    found = _started.get(key) if _remembers else None
    if found is None:
        compiled = kernel[(programs,)](*arguments, **options)
        # Other makers' compilers look at more than `_seen` does.
        ours = torch.version.cuda is not None and any(isinstance(a, Tensor) and a.is_cuda for a in arguments)
        if compiled is not None and ours:
            if len(_started) >= _AT_MOST:
                _started.clear()
            constants = tuple(options[name] for name in kernel.arg_names[len(arguments) :])
            _started[key] = compiled, constants
        return
    compiled, constants = found
    compiled[(programs, 1, 1)](*arguments, *constants)


@contextmanager
def through_triton() -> Iterator[None]:
    """Every launch inside is looked up by Triton itself."""
    global _remembers
    before, _remembers = _remembers, False
    try:
        yield
    finally:
        _remembers = before


def _seen(argument: Any) -> Any:
    """What Triton specialises on; an integer stands for itself, and a float for nothing but being one."""
    if isinstance(argument, Tensor):
        return argument.dtype, argument.get_device(), argument.data_ptr() % 16 == 0
    return float if isinstance(argument, float) else argument


def flags(keep: Tensor | None) -> tuple[Tensor | None, int]:
    """What a kernel reads of the rows that count, and the step from one to the next."""
    return (None, 0) if keep is None else (keep.view(torch.uint8), keep.stride(0))


def where_it_lies(launch: Launch) -> Launch:
    """Triton launches on the current device, wherever the tensors lie; so their device is made the current one."""

    @functools.wraps(launch)
    def launched(first: Tensor, *rest: Any, **options: Any) -> Any:
        if first.is_cuda and first.get_device() != torch.cuda.current_device():
            with torch.cuda.device(first.device):
                return launch(first, *rest, **options)
        return launch(first, *rest, **options)

    return launched  # type: ignore[return-value]


@functools.cache
def interpreted() -> bool:
    """Whether Triton runs its kernels on the CPU, one operation at a time."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


@functools.cache
def has_ptx() -> bool:
    """Shared memory is reached, and single instructions are picked, in PTX."""
    return not interpreted() and torch.version.cuda is not None
