"""The feature losses as their published code computes them, on one layer's features of a batch `[N, ...]`.

`fitnet` and `vid` take what their networks predict: the regressor itself is no part of the equation.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def at(student: Tensor, teacher: Tensor, *, p: float = 2.0) -> Tensor:
    """Mean squared difference of the attention maps, each scaled to length 1, of Zagoruyko and Komodakis.

    >>> at(torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([[[[0.0, 2.0]]]]))
    tensor(1.)
    """

    def attention(f: Tensor) -> Tensor:
        a = f.abs().pow(p).mean(1).flatten(1)
        scaled: Tensor = a / a.norm(dim=1, keepdim=True)
        return scaled

    return (attention(student) - attention(teacher.detach())).pow(2).mean()


def fitnet(predicted: Tensor, teacher: Tensor) -> Tensor:
    """Mean squared difference of the hint and what the regressor makes of the student, of Romero et al.

    >>> fitnet(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 2.0]]))
    tensor(2.)
    """
    return (predicted - teacher.detach()).pow(2).mean()


def pkt(student: Tensor, teacher: Tensor, *, eps: float = 1e-7) -> Tensor:
    """Mean over pairs of q log(q / p), q and p the cosines scaled to probabilities, of Passalis and Tefas.

    >>> pkt(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0], [1.0]]))
    tensor(0.0294)
    """

    def neighbours(f: Tensor) -> Tensor:
        f = f.flatten(1)
        f = f / (f.norm(dim=1, keepdim=True) + eps)
        cosine = (f @ f.T + 1) / 2
        return cosine / cosine.sum(1, keepdim=True)

    p, q = neighbours(student), neighbours(teacher.detach())
    return (q * torch.log((q + eps) / (p + eps))).mean()


def rkd(student: Tensor, teacher: Tensor, *, distance_weight: float = 25.0, angle_weight: float = 50.0) -> Tensor:
    """Huber differences of normalised distances and of angles, of Park et al.

    Written for rows that are all different: two that coincide make its gradient NaN or huge.

    >>> right, flat = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.0], [1.0], [-1.0]])
    >>> rkd(right, flat)
    tensor(2.4456)
    """

    def relations(f: Tensor) -> tuple[Tensor, Tensor]:
        f = f.flatten(1)
        n = f.shape[0]
        i, j = torch.triu_indices(n, n, offset=1)
        apart = (f[i] - f[j]).norm(dim=1)  # every pair once
        d = torch.zeros(n, n, dtype=f.dtype).index_put((i, j), apart / apart.mean())
        side = F.normalize(f.unsqueeze(0) - f.unsqueeze(1), dim=2)
        return d + d.T, torch.einsum("ijd,ikd->ijk", side, side)

    (d_s, a_s), (d_t, a_t) = relations(student), relations(teacher.detach())
    return distance_weight * F.smooth_l1_loss(d_s, d_t) + angle_weight * F.smooth_l1_loss(a_s, a_t)


def sp(student: Tensor, teacher: Tensor) -> Tensor:
    """|G_s - G_t|^2 / n^2, G the rows' inner products, each row scaled to length 1, of Tung and Mori.

    >>> sp(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0], [1.0]]))
    tensor(0.2929)
    """

    def gram(f: Tensor) -> Tensor:
        g = f.flatten(1) @ f.flatten(1).T
        scaled: Tensor = g / g.norm(dim=1, keepdim=True)
        return scaled

    return (gram(student) - gram(teacher.detach())).pow(2).mean()


def vid(predicted: Tensor, variance: Tensor, teacher: Tensor) -> Tensor:
    """Gaussian negative log-likelihood without its constant, a variance `[C]` a channel, of Ahn et al.

    >>> vid(torch.tensor([[1.0, 2.0]]), torch.tensor([1.0, 4.0]), torch.tensor([[3.0, 2.0]]))
    tensor(1.3466)
    """
    v = variance.view(1, -1, *[1] * (teacher.dim() - 2))
    return (((teacher.detach() - predicted).pow(2) / v + torch.log(v)) / 2).mean()
