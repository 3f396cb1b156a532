"""The Plackett-Luce model: the teacher's order, the weights of the choices, their likelihood and its gradient.

Everything here works on flat rows, `[N, C]`, and knows nothing of reductions, modules or devices' kernels.
"""

from plackett.choice.gradient import (
    After,
    Times,
    attach_gradient,
    attach_total,
    is_plain,
    times,
    wants_gradient,
)
from plackett.choice.likelihood import Choices, choice_likelihood
from plackett.choice.order import teacher_order
from plackett.choice.weights import WEIGHTS, ChoiceWeights, choice_weights

__all__ = [
    "WEIGHTS",
    "After",
    "ChoiceWeights",
    "Choices",
    "Times",
    "attach_gradient",
    "attach_total",
    "choice_likelihood",
    "choice_weights",
    "is_plain",
    "teacher_order",
    "times",
    "wants_gradient",
]
