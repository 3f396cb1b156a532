"""Convexity as measured: on functions whose answer is known, and on the losses of the paper's appendix."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from plackett.analysis import LogitSlice, Surface, given, survey
from plackett.analysis.given import PAPER, over_temperatures
from plackett.errors import InputError


def of(text: str, **options: float) -> Surface:
    return LogitSlice.random(50, seed=1, **options).survey(given(text).objective(), points=21)


@pytest.mark.parametrize("step", [None, 1e-3])
def test_the_hessian_of_a_quadratic_is_found(step: float | None) -> None:
    """f = 3 a^2 + 2 a b + b^2 has the eigenvalues 4 -+ 2 sqrt(2)."""
    found = survey(lambda p: 3 * p[:, 0] ** 2 + 2 * p[:, 0] * p[:, 1] + p[:, 1] ** 2, 2.0, points=21, step=step)
    assert found.convexity.smallest == pytest.approx(4 - 8**0.5, rel=1e-6)
    assert found.convexity.largest == pytest.approx(4 + 8**0.5, rel=1e-6)
    assert found.convexity.middle == pytest.approx(4 - 8**0.5, rel=1e-6)
    assert found.convexity.convex
    assert found.lowest == (0.0, 0.0)


def saddle(points: Tensor) -> Tensor:
    return points[:, 0] ** 2 - 0.01 * points[:, 1] ** 2


def dent(points: Tensor) -> Tensor:
    """A bowl with a dent that only a few points see."""
    return points.square().sum(-1) - 0.2 * torch.exp(-40 * (points - 0.5).square().sum(-1))


@pytest.mark.parametrize("function", [saddle, dent, lambda p: p.abs().sum(-1).sqrt(), lambda p: p.cos().sum(-1)])
@pytest.mark.parametrize("step", [None, 1e-3])
def test_what_is_not_convex_is_caught(function: object, step: float | None) -> None:
    found = survey(function, 1.0, points=31, step=step).convexity  # type: ignore[arg-type]
    assert found.smallest < -found.eigenvalue_tolerance
    assert found.violating > 0
    assert not found.convex


@pytest.mark.parametrize("function", [
    lambda p: p.exp().sum(-1), lambda p: torch.logsumexp(torch.cat([p, 2 * p, -p], -1), -1), lambda p: p.sum(-1),
    lambda p: 1e6 + p.square().sum(-1), lambda p: p.clamp_min(0).square().sum(-1), lambda p: 0 * p.sum(-1),
])  # fmt: skip
def test_what_is_convex_passes_also_where_it_is_flat(function: object) -> None:
    assert survey(function, 1.0, points=31, step=1e-3).convexity.convex  # type: ignore[arg-type]
    assert survey(function, 1.0, points=31).convexity.convex  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", [1.0, 30.0])
@pytest.mark.parametrize("text", [
    "kd:temperature=1", "kd:temperature=4", "pld", "pld:temperature=0.1", "pld:temperature=4,label_weight=1.0",
    "ce", "listmle", "position_listmle",
])  # fmt: skip
def test_kd_and_pld_are_convex_in_the_students_logits(text: str, norm: float) -> None:
    found = of(text, norm=norm).convexity
    assert found.convex, found


@pytest.mark.parametrize("seed", range(10))
def test_a_long_teacher_makes_no_false_alarm(seed: int) -> None:
    """With differences as wide as the plane's scale, one of these ten planes had an eigenvalue that seemed negative."""
    plane = LogitSlice.random(100, seed, norm=30.0)
    for text in ("kd:temperature=1", "pld", "pld:temperature=0.1"):
        found = plane.survey(given(text).objective(), points=21).convexity
        assert found.convex, (text, found)


@pytest.mark.parametrize("text", ["dist", "dist:temperature=4", "{ce: 0.1, dist: 1.0}", "pld:standardize=both"])
def test_correlations_are_not(text: str) -> None:
    found = of(text).convexity
    assert found.smallest < -100 * found.eigenvalue_tolerance
    assert found.share > 0.01
    assert not found.convex


def test_the_verdicts_of_the_papers_three_and_of_its_temperatures() -> None:
    plane = LogitSlice.random()
    verdicts = {each.title: plane.survey(each.objective(), points=25).convexity.convex for each in PAPER}
    assert verdicts == {"DIST": False, "KD": True, "PLD": True}
    for each in over_temperatures([2.0, 1.0, 0.5, 0.1]):
        assert plane.survey(each.objective(), points=25).convexity.convex, each.title


def test_directions_are_orthonormal_and_the_teacher_is_as_long_as_was_asked() -> None:
    for seed in range(5):
        plane = LogitSlice.random(7, seed, norm=2.5)
        gram = torch.stack([plane.first, plane.second]) @ torch.stack([plane.first, plane.second]).T
        assert torch.allclose(gram, torch.eye(2, dtype=torch.float64), atol=1e-14)
        assert float(plane.teacher.norm()) == pytest.approx(2.5, abs=1e-12)
        assert plane.label == int(plane.teacher.argmax())
    assert not torch.equal(LogitSlice.random(7, 0).first, LogitSlice.random(7, 1).first)


def test_the_grid_is_symmetric_about_its_middle() -> None:
    for points, step in ((31, None), (31, 1e-3), (24, 1e-3)):
        axis = survey(lambda p: p.square().sum(-1), 5.0, points=points, step=step).axis
        assert torch.equal(axis, -axis.flip(0))
        assert axis[-1].item() == pytest.approx(5.0)
        assert (0.0 in axis.tolist()) == (points % 2 == 1)


def test_a_slice_is_the_loss_at_its_points() -> None:
    plane = LogitSlice.random(20, seed=3)
    objective = given("{ce: 0.3, dist: {weight: 0.7, temperature: 2}}").objective()
    points = torch.tensor([[0.0, 0.0], [1.5, -2.0]])
    found = plane.function(objective)(points)
    student = plane.teacher + 1.5 * plane.first - 2.0 * plane.second
    alone = objective(student[None], plane.teacher[None], torch.tensor([plane.label])).total
    assert found.dtype == torch.float64
    assert found[1].item() == pytest.approx(alone.item(), rel=1e-12)


def test_the_values_do_not_depend_on_what_else_is_drawn() -> None:
    one, other = of("pld"), of("pld")
    assert torch.equal(one.values, other.values)
    assert one.convexity == other.convexity


@pytest.mark.parametrize(("text", "sentence"), [
    ("pdl", "Objective term 'pdl' is not the name of a loss; did you mean 'pld'"),
    ("pld:tau=2", "Objective term 'pld' has no option 'tau'"),
    ("pld:temperature", "The loss 'pld:temperature' is not understood at 'temperature'; write NAME:option=value"),
    ("at", "at reads features of a network, and a plane of logits has none."),
    ("{ce: [", "The loss '{ce: [' is not YAML: "),
])  # fmt: skip
def test_a_loss_that_is_not_understood_gets_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        given(text).objective()
    assert str(error.value).startswith(sentence)


def test_planes_that_cannot_be() -> None:
    for options, sentence in (
        ({"classes": 2}, "A plane of logits needs at least 3 classes, not 2."),
        ({"norm": 0.0}, "The norm of the teacher's logits is a number above 0, not 0."),
        ({"label": 100}, "The label is one of the classes 0 to 99, not 100."),
    ):
        with pytest.raises(InputError) as error:
            LogitSlice.random(**options)  # type: ignore[arg-type]
        assert str(error.value) == sentence
    with pytest.raises(InputError, match=r"^A grid needs at least 5 points a side and at most 1001, not 3\.$"):
        survey(saddle, 1.0, points=3)
    with pytest.raises(InputError, match=r"^The loss is not finite everywhere on this plane; take a smaller radius\.$"):
        survey(lambda p: p[:, 0].log(), 1.0)
