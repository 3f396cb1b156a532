"""The device that a person names, or the best that is there."""

from __future__ import annotations

import torch

from plackett.errors import InputError


def chosen(given: str | None) -> torch.device:
    """
    >>> chosen("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(given or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise InputError(f"There is no device {given!r}; choices: cpu, cuda.") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError("There is no CUDA device here; use --device cpu, or leave --device out.")
    return device
