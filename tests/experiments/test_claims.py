"""Claims of a paper against cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plackett.cli import main
from plackett.experiments import cells, claims
from plackett.experiments.claims import Verdict
from plackett.experiments.recipes import read
from tests.experiments.test_cells import cell

SAID = claims.of_paper(
    """
recipe: cifar100
source: A paper
claims:
  - {text: PLD beats KD and DKD, better: pld, than: [kd, dkd]}
  - {text: PLD beats labels, better: pld, than: [ce]}
except:
  resnet50-mobilenetv2: {pld: [dkd]}
"""
)


def seeds(method: str, *accuracies: float, **changes: Any) -> list[cells.Cell]:
    return [cell(method, seed, accuracy, **changes) for seed, accuracy in enumerate(accuracies)]


PLD, KD = seeds("pld", 0.703, 0.704, 0.705), seeds("kd", 0.694, 0.696, 0.695)


def verdicts(*given: list[cells.Cell]) -> list[Verdict]:
    return [answer.verdict for answer in claims.answers([c for each in given for c in each], SAID)]


def test_a_claim_is_seen_where_it_beats_every_method_it_names() -> None:
    ce = seeds("ce", 0.67, 0.69, 0.68)
    assert verdicts(PLD, KD, seeds("dkd", 0.680, 0.679, 0.681), ce) == [Verdict.SEEN, Verdict.SEEN]
    assert verdicts(PLD, KD, seeds("dkd", 0.710, 0.711, 0.712), ce)[0] == Verdict.NOT_SEEN
    assert verdicts(PLD, KD, seeds("dkd", 0.700, 0.711, 0.703), ce)[0] == Verdict.UNDECIDED
    assert verdicts(PLD, KD, ce)[0] == Verdict.UNTRIED
    # One loss is enough, whatever is still to run.
    assert verdicts(PLD, seeds("kd", 0.710, 0.711, 0.712), ce)[0] == Verdict.NOT_SEEN


def test_short_runs_and_subsets_answer_nothing() -> None:
    for small in ({"epochs": 2}, {"test": 200}):
        assert verdicts(seeds("pld", 0.7, 0.7, 0.7, **small), seeds("ce", 0.5, 0.5, 0.5, **small)) == []


def test_two_seeds_decide_nothing() -> None:
    assert verdicts(PLD[:2], seeds("ce", 0.5, 0.5))[1] == Verdict.UNDECIDED


def test_what_the_paper_excepts_is_not_asked() -> None:
    there = {"pair": "resnet50-mobilenetv2"}
    [first, _] = claims.answers([*seeds("pld", 0.6, 0.6, 0.6, **there)], SAID)
    assert [comparison.than for comparison in first.comparisons] == ["kd"]


def test_the_shipped_claims_name_methods_and_pairs_of_the_recipe() -> None:
    said, recipe = claims.of_paper(), read("cifar100")
    assert {m for claim in said.claims for m in (claim.better, *claim.than)} <= set(recipe.methods)
    assert set(said.excepted) <= set(recipe.pairs)


def test_the_command_prints_every_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells.append(tmp_path / "a.jsonl", [*PLD, *KD])
    with pytest.raises(SystemExit) as end:
        main(["table", str(tmp_path), "--claims"])
    lines = capsys.readouterr().out.splitlines()
    assert end.value.code == 0
    # Differences of 0.9, 0.8 and 1.0 points: 0.90 with t(2) * 0.1 / sqrt(3) = 0.25.
    row = next(line for line in lines if line.startswith("PLD beats divergence-based"))
    assert row.split("  ")[-3:] == ["resnet56-resnet20", "not run", "to kd +0.90 [+0.65, +1.15]; to dkd not run"]
    assert lines[-1].startswith("Claims: Bassam, Zhu, Bian")
    cells.append(tmp_path / "short" / "a.jsonl", [cell("pld", 0, 0.7, epochs=2)])
    with pytest.raises(SystemExit):
        main(["table", str(tmp_path / "short"), "--claims"])
    assert capsys.readouterr().err == (
        "The claims are about the recipe cifar100 at 250 epochs and 10,000 test pictures, of which there is no cell "
        "here.\n"
    )
    with pytest.raises(SystemExit) as end:
        main(["table", str(tmp_path), "--claims", "--format", "latex"])
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        "Claims have no format 'latex'; did you mean 'text'? (choices: csv, markdown, text).\n"
    )
