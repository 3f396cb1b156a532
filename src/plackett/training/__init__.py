"""One engine that trains a cohort: one teacher, one stream of batches, any number of students.

A single distillation is a cohort of one, a fair comparison of ten objectives a cohort of ten.
"""

from __future__ import annotations

from plackett.training.checkpoint import Checkpoints
from plackett.training.cohort import Cohort, EpochReport, Problem
from plackett.training.ledger import Metrics, NotFinite
from plackett.training.mode import Mode
from plackett.training.optimise import Recipe, Schedule
from plackett.training.pausing import Pause, Paused
from plackett.training.stepping import Stepping
from plackett.training.student import Student

__all__ = [
    "Checkpoints",
    "Cohort",
    "EpochReport",
    "Metrics",
    "Mode",
    "NotFinite",
    "Pause",
    "Paused",
    "Problem",
    "Recipe",
    "Schedule",
    "Stepping",
    "Student",
]
