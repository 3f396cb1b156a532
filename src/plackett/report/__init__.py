"""Run folders -> one HTML file that needs no network, no script and no second file. Never imports torch."""

from __future__ import annotations

from plackett.report.needs import need
from plackett.report.page import render, write

__all__ = ["need", "render", "write"]
