"""A teacher is a source of signals: the engine asks for a batch's and never how they came about."""

from __future__ import annotations

from plackett.teachers.check import first_choice_weight
from plackett.teachers.live import LiveTeacher
from plackett.teachers.source import Signals, Teacher

__all__ = ["LiveTeacher", "Signals", "Teacher", "first_choice_weight"]
