"""torch.export programs, run by a process that knows nothing of plackett."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from plackett.exporting import ExportError, to_torch
from tests.exporting.networks import CLASSES, Forked, of, packed, pictures

ALONE = """
import json, sys, torch
held = {"plackett.json": ""}
program = torch.export.load(sys.argv[1], extra_files=held).module()
inputs = torch.load(sys.argv[2], weights_only=True)
torch.save([program(x) for x in inputs], sys.argv[3])
assert not any(name.partition(".")[0] in ("plackett", "timm") for name in sys.modules)
print(json.dumps(json.loads(held["plackett.json"])))
"""


@pytest.mark.parametrize("kind", ["own", "vit"])
def test_a_program_runs_without_the_code_that_built_it(kind: str, tmp_path: Path) -> None:
    found, path = packed(kind), tmp_path / "model.pt2"
    compared = to_torch(found, path)
    assert compared.source == "12 pictures of noise"
    inputs = [pictures(found, n, seed=n) for n in (1, 3, 8)]
    torch.save(inputs, tmp_path / "in.pt")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ALONE, str(path), str(tmp_path / "in.pt"), str(tmp_path / "out.pt")],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert said["class_names"] == list(CLASSES)
    assert said["mean"] == [0.4, 0.5, 0.6]
    assert said["check_against_pytorch"] == compared.sentence()
    for x, logits in zip(inputs, torch.load(tmp_path / "out.pt", weights_only=True), strict=True):
        with torch.no_grad():
            torch.testing.assert_close(logits, found.network(x), rtol=1e-4, atol=1e-5)


def test_a_program_that_answers_otherwise_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"model\.pt2 does not answer as the network does"):
        to_torch(of(Forked()), tmp_path / "model.pt2")
    assert not list(tmp_path.iterdir())
