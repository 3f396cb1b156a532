"""Where a run took place: versions, processor and commit."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import plackett

if TYPE_CHECKING:
    import torch

_PACKAGES = ("torch", "numpy", "scikit-learn")


def versions() -> dict[str, str]:
    """plackett, Python and every package that a result depends on, as installed."""
    found = {"plackett": plackett.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """The processor's name, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.processor() or platform.machine()


def where(device: torch.device) -> str:
    """The device and its name: `cpu: AMD EPYC`."""
    import torch

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor()
    return f"{device.type}: {name}"


@functools.cache
def commit() -> str | None:
    """The commit of the checkout that plackett runs from, with `+changes` where its sources differ; None elsewhere.

    `PLACKETT_COMMIT` says it where sources were copied without their history, as into a container. Asked once: what
    this process runs was read when it began.
    """
    if said := os.environ.get("PLACKETT_COMMIT"):
        return said
    package = Path(plackett.__file__).parent
    root = package.parent.parent
    if not (root / ".git").exists() or package.parent.name != "src":
        return None
    head = _git(root, "rev-parse", "HEAD")
    if head is None:
        return None
    return f"{head}+changes" if _git(root, "status", "--porcelain", "--", "src") else head


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
