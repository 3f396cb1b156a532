"""Every loss as its paper writes it, in plain PyTorch that autograd differentiates: the truth that tests compare with.

Written for reading and for float64, not for speed. `pld` has every option of `plackett.functional.pld`; the others
have what their papers have (no masks, no classes left out), and a mean over rows.

>>> import torch
>>> s = torch.tensor([[2.0, 1.0, 0.0]], dtype=torch.float64)
>>> t = torch.tensor([[3.0, 1.0, 2.0]], dtype=torch.float64)
>>> pld(s, t, torch.tensor([0]))
tensor(0.5925, dtype=torch.float64)
"""

from plackett.reference.features import at, fitnet, pkt, rkd, sp, vid
from plackett.reference.logits import cross_entropy, dist, dkd, kd, standardize
from plackett.reference.plackett_luce import pld, published_pld

__all__ = [
    "at",
    "cross_entropy",
    "dist",
    "dkd",
    "fitnet",
    "kd",
    "pkt",
    "pld",
    "published_pld",
    "rkd",
    "sp",
    "standardize",
    "vid",
]
