"""What installing and importing costs, and what it must not drag in."""

from __future__ import annotations

import importlib.resources
import json
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).parent.parent


def python(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return run.stdout


def test_importing_the_losses_imports_no_vision_library() -> None:
    code = (
        "import sys, json, plackett; plackett.PLDLoss(); plackett.Objective({'pld': 1.0});"
        "print(json.dumps(sorted(m for m in sys.modules if '.' not in m)))"
    )
    loaded = set(json.loads(python(code)))
    unwanted = {"torchvision", "timm", "sklearn", "matplotlib", "jinja2", "pydantic", "typer", "rich", "transformers"}
    assert "torch" in loaded
    assert not loaded & unwanted


def test_the_base_install_is_seven_packages_and_any_torch_from_2_11() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[>=<]", line)[0]: line for line in project["dependencies"]}
    assert set(needed) == {"torch", "numpy", "safetensors", "pyyaml", "pydantic", "typer", "rich"}
    assert needed["torch"] == "torch>=2.11"
    extras = {"demo", "report", "vision", "detection", "export", "lm", "tracking", "test", "docs", "all"}
    assert extras <= set(project["optional-dependencies"])


def test_types_recipes_and_templates_stand_where_a_wheel_takes_them_from() -> None:
    """The wheel is the folder of the package, as it is."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/plackett"]}
    package = importlib.resources.files("plackett")
    for inside in ("py.typed", "modules.pyi", "recipes/cifar100.yaml", "report/templates/page.html"):
        assert package.joinpath(inside).is_file(), inside


def test_importing_the_package_does_not_import_torch() -> None:
    assert python("import sys, plackett; print('torch' in sys.modules)").strip() == "False"


def test_the_losses_add_less_than_a_tenth_of_a_second_to_importing_torch() -> None:
    """Of the processor: what else runs on the machine does not count."""
    code = (
        "import torch, time; t = time.process_time(); import plackett; plackett.PLDLoss; print(time.process_time() - t)"
    )
    assert min(float(python(code)) for _ in range(5)) < 0.1


@pytest.mark.parametrize(("left", "right"), [
    ("choice", "losses"), ("choice", "kernels"), ("losses", "kernels"), ("losses", "functional"),
    ("losses", "modules"), ("kernels", "functional"), ("functional", "modules"), ("functional", "objectives"),
    ("data", "models"), ("models", "teachers"), ("teachers", "training"), ("objectives", "training"),
    ("training", "evaluation"), ("evaluation", "experiments"), ("experiments", "analysis"), ("analysis", "report"),
    ("experiments", "distilling"), ("distilling", "report"), ("evaluation", "distilling"),
    ("experiments", "report"), ("report", "cli"),
])  # fmt: skip
def test_imports_point_left_only(left: str, right: str) -> None:
    """The house of DESIGN: what stands left knows nothing of what stands right."""
    package = ROOT / "src" / "plackett"
    files = [package / f"{left}.py", *(package / left).rglob("*.py")]
    found = [f for f in files if f.exists()]
    assert found
    for file in found:
        statement = re.search(rf"^\s*(from|import) plackett\.{right}\b", file.read_text(), re.MULTILINE)
        assert statement is None, f"{file.relative_to(package)} imports plackett.{right}"


def test_the_report_and_the_statistics_never_import_torch() -> None:
    for module in ("plackett.experiments.statistics", "plackett.experiments.records", "plackett.report"):
        assert python(f"import sys, {module}; print('torch' in sys.modules)").strip() == "False", module


def test_no_file_is_too_long_to_read_at_one_go() -> None:
    long = {
        str(f.relative_to(ROOT)): n
        for f in (ROOT / "src").rglob("*.py")
        if (n := len(f.read_text().splitlines())) > 400
    }
    assert not long
