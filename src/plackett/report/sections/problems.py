"""What is missing or broken in the run folders."""

from __future__ import annotations

from typing import Any

from plackett.report.material import Material

TITLE = "What is missing"


def context(material: Material) -> dict[str, Any] | None:
    problems = list(dict.fromkeys(material.problems))
    return {"problems": problems, "nothing": not material.study.all_runs} if problems else None
