"""Networks by name.

>>> names()
('mlp_student', 'mlp_teacher')
>>> parameters(create("mlp_student", classes=10))
2410
"""

from __future__ import annotations

from plackett.models import mlp as mlp
from plackett.models.registry import create, names, parameters, register

__all__ = ["create", "names", "parameters", "register"]
