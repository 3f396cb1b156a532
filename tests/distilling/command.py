"""`plackett distill` called as a person calls it, on small pictures."""

from __future__ import annotations

from pathlib import Path

from tests.distilling import pets

SMALL = ("--student-sight", "size=16,mean=0.5,std=0.25,crop=1", "epochs=2", "batch_size=12", "--workers", 0)


def made(root: Path, train: int = 12, val: int = 6, test: int = 8) -> Path:
    """So many pictures in `pets`, and in `teacher` who has learned them."""
    pets.folder(root / "pets", {"train": train, "val": val, "test": test})
    pets.teacher(root / "pets", root / "teacher")
    return root


def asked(place: Path, *more: object, data: Path | None = None, student: str = "resnet8x4") -> tuple[object, ...]:
    named = ("--teacher", place / "teacher", "--student", student, "--data", data or place / "pets")
    return ("distill", *named, *SMALL, *more)
