"""Networks by name.

>>> names()[:4]
('mlp_student', 'mlp_teacher', 'mobilenetv2_cifar', 'resnet20')
>>> parameters(create("resnet20", classes=100))
278324
"""

from __future__ import annotations

from plackett.models import mlp as mlp
from plackett.models import mobilenet as mobilenet
from plackett.models import resnet as resnet
from plackett.models import resnet50 as resnet50
from plackett.models import wrn as wrn
from plackett.models.network import Float32Linear, Network, answer_in_float32
from plackett.models.registry import create, names, parameters, register
from plackett.models.with_timm import register_with_timm

__all__ = [
    "Float32Linear",
    "Network",
    "answer_in_float32",
    "create",
    "names",
    "parameters",
    "register",
    "register_with_timm",
]
