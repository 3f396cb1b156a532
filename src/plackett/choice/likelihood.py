"""The weighted Plackett-Luce likelihood of an order, and its gradient in closed form.

With e_i = exp(s_i), X_k the sum of e over what is left at choice k, and r_i the rank of class i:

    L       = sum_k a_k (log X_k - s_pi_k)   = sum_k a_k log(1 + X_{k+1} / e_pi_k)
    dL/ds_i = e_i sum_{k <= r_i} a_k / X_k - a_{r_i}   = e_i sum_{k < r_i} a_k / X_k - a_{r_i} X_{r_i + 1} / X_{r_i}

The right-hand forms are the ones computed: a student that is nearly right leaves X_{k+1} / e_pi_k far below 1, and the
left-hand ones would round it away. One suffix scan for X, one prefix scan for a / X; no autograd graph.

What is left at choice k: with a label and k = 1, all of the student's classes; otherwise the classes that the teacher
offers and that were not chosen before.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from plackett.tracing import may_look

# exp(s - max s) is summed directly in rows whose logits span less than this: the smallest X is then 4e-31 and the
# largest a / X 3e30, both far inside float32. Other rows are computed in the log domain, in float64.
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
    if not may_look(*(x for x in (student, choices.order, choices.a, choices.offered) if x is not None)):
        return _log_domain(student, choices, gradient)
    if choices.offered is None:
        return _linear_domain(student, choices, gradient)
    exact = choices._replace(a=choices.a.double())
    loss, grad = _log_domain(student.double(), exact, gradient)
    return loss.to(student.dtype), None if grad is None else grad.to(student.dtype)


def _linear_domain(student: Tensor, choices: Choices, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """Choices among all classes, on the CPU."""
    order, a = choices.order, choices.a
    top, kept = student.amax(-1, keepdim=True), order.shape[-1]
    partial = kept < student.shape[-1]
    wide = ~(student.amin(-1, keepdim=True) - top >= -_LINEAR_RANGE).squeeze(-1)  # also at a logit of -inf or NaN
    # Few buffers, each used again: fresh memory costs more than what is done in it.
    if partial:  # what is never charged is one more column, which is left to the end and weighs nothing
        slopes = torch.sub(student, top).exp_()
        e = slopes.gather(-1, order)
        e = torch.cat([e, slopes.scatter_(-1, order, 0.0).sum(-1, keepdim=True)], dim=-1)
        a = torch.nn.functional.pad(a, (0, 1))
    else:
        slopes = torch.empty_like(student)
        e = student.gather(-1, order).sub_(top).exp_()
    buffer = e.flip(-1).cumsum_(-1)  # PyTorch accumulates float32 in float64 here
    x = buffer.flip(-1)
    # After the last choice nothing is left: its loss and its own gradient are 0.
    loss = torch.div(x[:, 1:], e[:, :-1], out=buffer[:, :-1]).log1p_().mul_(a[:, :-1]).sum(-1)
    grad = None
    if gradient:
        ratio = torch.div(a, x, out=buffer)
        slope = torch.zeros_like(x)
        torch.mul(ratio[:, :-1], x[:, 1:], out=slope[:, :-1]).neg_()
        w = ratio.cumsum_(-1)
        slope[:, 1:].addcmul_(e[:, 1:], w[:, :-1])
        if partial:
            slopes *= w[:, -1:]
        grad = slopes.scatter_(-1, order, slope[:, :kept])
    if wide.any():
        few = Choices(order[wide], choices.a[wide].double(), None, choices.labelled)
        few_loss, few_grad = _log_domain(student[wide].double(), few, gradient)
        loss[wide] = few_loss.to(loss.dtype)
        if grad is not None and few_grad is not None:
            grad[wide] = few_grad.to(grad.dtype)
    return loss, grad


def _log_domain(student: Tensor, choices: Choices, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """Any choices on any device: no branch on data, no host synchronisation, safe at any range of logits."""
    order, a, offered, labelled = choices
    nothing = -torch.inf
    full = order.shape[-1] == student.shape[-1]  # every class is some choice's: nothing is left uncharged
    s = student.gather(-1, order)  # [N, K]
    z = s
    if offered is not None:
        in_choice = offered.gather(-1, order)
        if labelled:  # the label takes part in its own choice even where the teacher does not offer it
            in_choice = torch.cat([torch.ones_like(in_choice[:, :1]), in_choice[:, 1:]], dim=-1)
        z = torch.where(in_choice, s, nothing)

    # log X_{k+1}: what is left once choice k is made
    none = torch.full_like(s[:, :1], nothing)
    left = torch.cat([z.flip(-1).logcumsumexp(-1).flip(-1)[:, 1:], none], dim=-1)
    if not full:
        uncharged = student.scatter(-1, order, nothing)
        if offered is not None:
            uncharged = torch.where(offered, uncharged, nothing)
        left = torch.logaddexp(left, torch.logsumexp(uncharged, dim=-1, keepdim=True))
    if labelled and offered is not None:  # the label's own choice is among all of the student's classes
        unoffered = torch.where(offered.scatter(-1, order[:, :1], True), nothing, student)
        first_left = torch.logaddexp(left[:, :1], torch.logsumexp(unoffered, -1, keepdim=True))
        left = torch.cat([first_left, left[:, 1:]], dim=-1)
    phi = torch.logaddexp(left, z)  # log X_k

    charged = (a != 0) & (left != nothing)  # with nothing left the choice is certain, and costs nothing
    zero = torch.zeros((), dtype=z.dtype, device=z.device)
    loss = torch.where(charged, a * torch.logaddexp(left - z, zero), 0.0).sum(-1)
    if not gradient:
        return loss, None

    log_ratio = torch.where((a != 0) & (phi != nothing), a.log() - phi, nothing)
    log_w = log_ratio.logcumsumexp(-1)  # a sum of positive terms
    before = torch.cat([none, log_w[:, :-1]], dim=-1)
    at_choice = torch.where(z > nothing, (z + before).exp(), 0.0)
    at_choice = at_choice - torch.where(charged, a * (left - phi).exp(), 0.0)
    if offered is not None:  # not offered: pays in the label's choice alone
        at_choice = torch.where(in_choice, at_choice, (s + log_ratio[:, :1]).exp() if labelled else 0.0)
    if full:
        return loss, torch.empty_like(student).scatter(-1, order, at_choice)
    elsewhere = (student + log_w[:, -1:]).exp()  # offered, never charged: pays in all K choices
    if offered is not None:
        elsewhere = torch.where(offered, elsewhere, (student + log_ratio[:, :1]).exp() if labelled else 0.0)
    return loss, elsewhere.scatter(-1, order, at_choice)
