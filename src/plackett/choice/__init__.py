"""The Plackett-Luce model: the teacher's order, the weights of the choices, their likelihood and its gradient.

Everything here works on flat rows, `[N, C]`, and knows nothing of reductions, modules or devices' kernels.
"""

from plackett.choice.gradient import Times, attach_gradient, times, wants_gradient
from plackett.choice.likelihood import Choices, choice_likelihood
from plackett.choice.order import teacher_order
from plackett.choice.weights import WEIGHTS, ChoiceWeights, choice_weights

__all__ = [
    "WEIGHTS",
    "ChoiceWeights",
    "Choices",
    "Times",
    "attach_gradient",
    "choice_likelihood",
    "choice_weights",
    "teacher_order",
    "times",
    "wants_gradient",
]
