"""One engine that trains a cohort: one teacher, one stream of batches, any number of students.

A single distillation is a cohort of one, a fair comparison of ten objectives a cohort of ten.
"""

from __future__ import annotations

from plackett.training.cohort import Cohort, EpochReport
from plackett.training.optimise import Recipe
from plackett.training.student import Metrics, Student

__all__ = ["Cohort", "EpochReport", "Metrics", "Recipe", "Student"]
