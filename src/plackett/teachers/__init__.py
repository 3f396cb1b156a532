"""A teacher is a source of signals: the engine asks for a batch's and never how they came about."""

from __future__ import annotations

from plackett.teachers.check import first_choice_weight
from plackett.teachers.live import LiveTeacher
from plackett.teachers.matched import Matched, match
from plackett.teachers.moved import Moved
from plackett.teachers.seen import SeeingTeacher
from plackett.teachers.source import Signals, Teacher

__all__ = ["LiveTeacher", "Matched", "Moved", "SeeingTeacher", "Signals", "Teacher", "first_choice_weight", "match"]
