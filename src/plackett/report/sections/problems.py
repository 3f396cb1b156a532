"""What is missing or broken in the run folders."""

from __future__ import annotations

from typing import Any

from plackett.experiments.study import Study

TITLE = "What is missing"


def context(study: Study) -> dict[str, Any] | None:
    return {"problems": study.problems} if study.problems else None
