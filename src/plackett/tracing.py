"""Whether code may look at the numbers in a tensor, or may only say what is to be done with them."""

from __future__ import annotations

import torch
from torch import Tensor


def is_transformed(tensor: Tensor) -> bool:
    """Whether `torch.func` (vmap, grad, jvp) has wrapped it; the compiler, which traces those too, cannot be asked.

    The vmap of `is_grads_batched` is an older one, whose tensors are known by having no memory.
    """
    if torch.compiler.is_compiling():
        return False
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor) or not torch._C._has_storage(tensor))


def has_numbers(tensor: Tensor) -> bool:
    """Whether there are numbers to look at: not in a traced graph, nor in meta, fake or `torch.func`'s tensors."""
    return (
        not torch.compiler.is_compiling()
        and type(tensor) in (Tensor, torch.nn.Parameter)
        and tensor.device.type != "meta"
        and not is_transformed(tensor)
    )


def may_look(*tensors: Tensor) -> bool:
    """Whether looking is free: on the CPU. Elsewhere the host would wait for the device."""
    return all(tensor.device.type == "cpu" and has_numbers(tensor) for tensor in tensors)
