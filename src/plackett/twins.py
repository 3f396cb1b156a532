"""How a loss function becomes an nn.Module: options held, tensors passed on, nothing written twice."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from plackett import checks, functional
from plackett.errors import UnknownOptionError
from plackett.losses import registry
from plackett.losses.registry import PER_CALL, Loss


class LossModule(nn.Module):
    """A loss function with its options held; `mask` and `num_items` change from call to call and go to `forward`."""

    entry: Loss
    function: Callable[..., Any]

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__()
        if values:
            first = next(iter(self.entry.options))
            raise UnknownOptionError(f"{type(self).__name__} takes its options by name, e.g. {first}={values[0]!r}.")
        registry.check_options(self.entry, options)
        checks.option_values(self.entry, options)
        self._given = tuple(options)
        for name, parameter in self.entry.options.items():
            value = options.get(name, parameter.default)
            if isinstance(value, Tensor):  # a weight a rank moves with .to(device)
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *tensors: Any, **call: Any) -> Any:
        for name in call:
            if name in self.entry.options:
                raise UnknownOptionError(
                    f"{type(self).__name__} holds {name}={getattr(self, name)!r} since it was made; make another one, "
                    f"or call plackett.functional.{self.entry.called}."
                )
        held = {name: getattr(self, name) for name in self.entry.options}
        return self.function(*tensors, **held, **call)

    def extra_repr(self) -> str:
        shown = {name: getattr(self, name) for name in self._given}
        return ", ".join(f"{n}={f'[{len(v)}]' if isinstance(v, Tensor) else repr(v)}" for n, v in shown.items())


def twin(entry: Loss) -> type[nn.Module]:
    assert entry.function is not None
    name = entry.function.__name__
    function = getattr(functional, name)
    signature = inspect.signature(function)
    tensors = ", ".join(n for n in signature.parameters if n in ("student", "teacher", "target"))
    calls = [p for n, p in signature.parameters.items() if n not in entry.options]
    doc = f"""{entry.card.title}: :func:`plackett.functional.{name}` as a module, with its options and defaults.

    Call it with `({tensors}, *, {", ".join(n for n in PER_CALL if n in signature.parameters)})`.
    """

    def forward(self: LossModule, *args: Any, **kwargs: Any) -> Any:
        return LossModule.forward(self, *args, **kwargs)

    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    forward.__signature__ = signature.replace(parameters=[first, *calls])  # type: ignore[attr-defined]
    members = {
        "entry": entry,
        "function": staticmethod(function),
        "forward": forward,
        "__doc__": doc,
        "__module__": "plackett.modules",
    }
    made = type(entry.module_name, (LossModule,), members)
    made.__signature__ = inspect.Signature(list(entry.options.values()))  # type: ignore[attr-defined]
    return made
