"""The weighted Plackett-Luce likelihood of an order, and its gradient in closed form.

    L     = sum_k a_k (phi_k - s_pi_k),    phi_k = log X_k,    X_k = sum of exp(s) over what is left at choice k
    dL/ds_i = exp(s_i) W_i - a_rank(i),    W_i   = sum_{k <= rank(i)} a_k / X_k

One suffix scan for X, one prefix scan for W; no autograd graph. What is left at choice k:

- k = 1 with a label: all of the student's classes;
- otherwise: the classes that the teacher offers and that were not chosen before.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

# exp(s - max s) is summed directly in rows whose logits span less than this: the smallest X is then 3e-31 and the
# largest a / X 4e30, both far inside float32. Other rows are computed in the log domain, in float64.
_LINEAR_RANGE = 70.0


class Choices(NamedTuple):
    """The charged choices of every row: their `order` `[N, K]`, weights `a` `[N, K]`, and who may be chosen when.

    `offered` `[N, C]` is None where the teacher offers every class of every row.
    """

    order: Tensor
    a: Tensor
    offered: Tensor | None
    labelled: bool


def choice_likelihood(student: Tensor, choices: Choices, gradient: bool = True) -> tuple[Tensor, Tensor | None]:
    """Loss `[N]` of `student` `[N, C]` and, if asked, its gradient `[N, C]`, both in the student's dtype.

    >>> s = torch.tensor([[1.0, 0.0]])
    >>> choices = Choices(torch.tensor([[0, 1]]), torch.tensor([[1.0, 0.0]]), None, True)
    >>> choice_likelihood(s, choices)  # a = (1, 0) is cross-entropy
    (tensor([0.3133]), tensor([[-0.2689,  0.2689]]))
    """
    order, _, offered, _ = choices
    plain = order.shape[-1] == student.shape[-1] and offered is None
    if plain and student.device.type == "cpu" and not torch.compiler.is_compiling():
        return _linear_domain(student, choices, gradient)
    return _log_domain(student, choices, gradient)


def _linear_domain(student: Tensor, choices: Choices, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """Full orders over all classes, on the CPU."""
    order, a = choices.order.flip(-1), choices.a.flip(-1)  # last choice first: X is then a plain cumsum
    z = student.gather(-1, order)
    z -= student.amax(-1, keepdim=True)
    e = z.exp()
    x = e.cumsum(-1)  # PyTorch accumulates float32 in float64 here
    loss = x.log().sub_(z).mul_(a).sum(-1)
    grad = None
    if gradient:
        w = torch.div(a, x, out=x).flip(-1).cumsum(-1).flip(-1)
        grad = torch.empty_like(student).scatter_(-1, order, e.mul_(w).sub_(a))
    wide = ~(z.amin(-1) >= -_LINEAR_RANGE)  # also where a student's logit is -inf or NaN
    if wide.any():
        few = Choices(choices.order[wide], choices.a[wide].double(), None, choices.labelled)
        few_loss, few_grad = _log_domain(student[wide].double(), few, gradient)
        loss[wide] = few_loss.to(loss.dtype)
        if grad is not None and few_grad is not None:
            grad[wide] = few_grad.to(grad.dtype)
    return loss, grad


def _log_domain(student: Tensor, choices: Choices, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """Any choices on any device: no branch on data, no host synchronisation, safe at any range of logits."""
    order, a, offered, labelled = choices
    nothing = -torch.inf
    z = student.gather(-1, order)  # [N, K]
    chosen = torch.zeros_like(student, dtype=torch.bool).scatter(-1, order, True)
    available = ~chosen if offered is None else offered & ~chosen
    if offered is not None:
        in_choice = offered.gather(-1, order)
        if labelled:  # the label takes part in its own choice even where the teacher does not offer it
            in_choice = torch.cat([torch.ones_like(in_choice[:, :1]), in_choice[:, 1:]], dim=-1)
        z = torch.where(in_choice, z, nothing)

    # phi_k = logsumexp over {pi_k, ..., pi_K} and the classes never charged
    rest = torch.logsumexp(torch.where(available, student, nothing), dim=-1, keepdim=True)  # [N, 1]
    phi = torch.logaddexp(z.flip(-1).logcumsumexp(-1).flip(-1), rest)
    if labelled and offered is not None:  # the label's own choice is among all of the student's classes
        label = order[:, :1]
        unoffered = torch.where(offered.scatter(-1, label, True), nothing, student)
        phi = torch.cat([torch.logaddexp(phi[:, :1], torch.logsumexp(unoffered, -1, keepdim=True)), phi[:, 1:]], -1)

    charged = a > 0
    loss = torch.where(charged, a * (phi - z), 0.0).sum(-1)
    if not gradient:
        return loss, None

    # log W_k = logcumsumexp(log a_k - phi_k); everything in it is a sum of positive terms
    log_ratio = torch.where(charged, a.log() - phi, nothing)
    log_w = log_ratio.logcumsumexp(-1)
    at_choice = torch.where(z > nothing, (z + log_w).exp(), 0.0) - a
    elsewhere = (student + log_w[:, -1:]).exp()  # offered, never charged: pays in all K choices
    if offered is not None:  # not offered: pays in the label's choice alone
        first = (student + log_ratio[:, :1]).exp() if labelled else torch.zeros_like(student)
        elsewhere = torch.where(offered, elsewhere, first)
        at_choice = torch.where(in_choice, at_choice, elsewhere.gather(-1, order))
    return loss, elsewhere.scatter(-1, order, at_choice)
