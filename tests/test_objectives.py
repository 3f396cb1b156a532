"""An objective is the sum of its terms, whatever they are."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from plackett import Objective, losses, standardize
from plackett import functional as F
from plackett.errors import InputError
from tests.cases import gapped_case, random_case


def test_total_is_the_weighted_sum_of_its_terms() -> None:
    case = random_case()
    objective = Objective(
        {"ce": 0.1, "kd": {"weight": 0.9, "temperature": 2}, "pld": {"weight": 2.0, "temperature": 4}}
    )
    total, terms = objective(*case)
    expected = {
        "ce": F.cross_entropy(case.student, case.target),
        "kd": F.kd(case.student, case.teacher, temperature=2),
        "pld": F.pld(*case, temperature=4),
    }
    assert terms == expected
    torch.testing.assert_close(total, 0.1 * expected["ce"] + 0.9 * expected["kd"] + 2 * expected["pld"])


def test_terms_are_numbers_to_report_and_the_total_has_the_graph() -> None:
    case = random_case()
    student = case.student.clone().requires_grad_()
    outcome = Objective({"ce": 1.0, "kd": 1.0})(student, case.teacher, case.target)
    assert outcome.total.requires_grad
    assert not any(value.requires_grad for value in outcome.terms.values())
    outcome.total.backward()
    assert student.grad is not None


def test_two_terms_of_one_loss() -> None:
    case = random_case()
    objective = Objective({"sharp": {"loss": "pld", "temperature": 1.0}, "soft": {"loss": "pld", "temperature": 4.0}})
    total, terms = objective(*case)
    torch.testing.assert_close(total, F.pld(*case) + F.pld(*case, temperature=4.0))
    assert list(terms) == ["sharp", "soft"]


def test_ignored_labels_are_ignored_by_terms_that_read_no_label() -> None:
    case = random_case(6, 5)
    target = case.target.clone()
    target[[0, 3]] = -100
    keep = [1, 2, 4, 5]
    objective = Objective({"ce": 1.0, "kd": 1.0, "dist": 1.0, "pld": 1.0})
    ours = objective(case.student, case.teacher, target)
    alone = objective(case.student[keep], case.teacher[keep], case.target[keep])
    for name, value in alone.terms.items():
        torch.testing.assert_close(ours.terms[name], value, msg=name)


def test_another_ignore_index_reaches_every_term() -> None:
    case = random_case(6, 5)
    target = case.target.clone()
    target[0] = 255
    ours = Objective({"ce": 1.0, "pld": 1.0}, ignore_index=255)(case.student, case.teacher, target)
    alone = Objective({"ce": 1.0, "pld": 1.0})(case.student[1:], case.teacher[1:], case.target[1:])
    torch.testing.assert_close(ours.total, alone.total)


def test_warm_up_grows_linearly_and_stays_on_the_device() -> None:
    case = random_case()
    objective = Objective({"dkd": {"weight": 2.0, "warmup_epochs": 20}})
    full = F.dkd(*case)
    buffer = objective.warmup.data_ptr()
    for epoch, share in ((0, 1 / 20), (9, 10 / 20), (19, 1.0), (100, 1.0)):
        objective.set_epoch(epoch)
        torch.testing.assert_close(objective(*case).total, 2 * share * full, rtol=1e-6, atol=0)
    assert objective.warmup.data_ptr() == buffer
    assert not objective.state_dict()


@pytest.mark.parametrize("which", ["student", "teacher", "both"])
def test_standardized_logits(which: str) -> None:
    case = random_case()
    total, _ = Objective({"pld": {"standardize": which}})(*case)
    student = standardize(case.student) if which != "teacher" else case.student
    teacher = standardize(case.teacher) if which != "student" else case.teacher
    torch.testing.assert_close(total, F.pld(student, teacher, case.target))


def test_standardized_students_use_the_statistics_of_the_offered_classes() -> None:
    case = gapped_case(3, 8)
    total, _ = Objective({"kd": {"standardize": "both", "temperature": 2.0}})(*case)
    rows = []
    for s, t in zip(case.student, case.teacher, strict=True):
        offered = t > -torch.inf
        rows.append(F.kd(standardize(s[offered]), standardize(t[offered]), temperature=2.0))
    torch.testing.assert_close(total, torch.stack(rows).mean())


def test_features_by_name_and_by_list() -> None:
    student = {"early": torch.randn(4, 3, 8, 8), "late": torch.randn(4, 6, 4, 4)}
    teacher = {"early": torch.randn(4, 5, 8, 8), "late": torch.randn(4, 9, 4, 4)}
    case = random_case(4, 5, torch.float32)
    named = Objective({"ce": 1.0, "at": {"weight": 1000.0, "taps": ["late"]}})
    assert named.taps == ("late",)
    assert named.reads_features
    outcome = named(*case, student_features=student, teacher_features=teacher)
    torch.testing.assert_close(outcome.terms["at"], F.at(student["late"], teacher["late"]))
    listed = Objective({"at": 1000.0})
    both = listed(*case, student_features=list(student.values()), teacher_features=list(teacher.values()))
    torch.testing.assert_close(both.total, 1000 * F.at(list(student.values()), list(teacher.values())))


def test_parameters_of_terms_are_the_objectives_own() -> None:
    objective = Objective({"ce": 1.0, "fitnet": {"weight": 100.0, "student_channels": 3, "teacher_channels": 5}})
    names = [name for name, _ in objective.named_parameters()]
    assert names
    assert all(name.startswith("losses.fitnet") for name in names)


def test_an_objective_without_a_teacher() -> None:
    case = random_case()
    objective = Objective({"ce": 1.0})
    assert not objective.reads_teacher
    torch.testing.assert_close(
        objective(case.student, target=case.target).total, F.cross_entropy(case.student, case.target)
    )


def test_num_items_reaches_every_term() -> None:
    case = random_case(10, 5)
    objective = Objective({"ce": 1.0, "kd": 1.0, "pld": 1.0})
    parts = [objective(*(t[r] for t in case), num_items=10).total for r in (slice(0, 3), slice(3, 10))]
    torch.testing.assert_close(sum(parts), objective(*case).total)


def test_under_torch_compile() -> None:
    case = random_case(dtype=torch.float32)
    objective = Objective({"ce": 0.1, "kd": {"weight": 0.9, "warmup_epochs": 2}, "pld": 1.0})
    compiled = torch.compile(objective, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*case).total, objective(*case).total)


def test_warm_up_reaches_a_compiled_objective_without_compiling_again() -> None:
    case = random_case(dtype=torch.float32)
    objective = Objective({"ce": 1.0, "dkd": {"weight": 2.0, "warmup_epochs": 20}})
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(objective, fullgraph=True, backend=counter)
    totals = []
    for epoch in (0, 5, 19):
        objective.set_epoch(epoch)
        totals.append(compiled(*case).total.item())
        torch.testing.assert_close(totals[-1], objective(*case).total.item())
    assert len(set(totals)) == 3
    assert counter.frame_count == 1


def test_every_loss_under_torch_compile() -> None:
    case = random_case(6, 5, torch.float32)
    channels = {"student_channels": 3, "teacher_channels": 4}
    every = {name: channels if name in ("fitnet", "vid") else 1.0 for name in losses.names()}
    objective = Objective(every | {"std": {"loss": "kd", "standardize": "both", "divergence": "js"}})
    features = {"a": torch.randn(6, 3, 4, 4)}, {"a": torch.randn(6, 4, 4, 4)}
    compiled = torch.compile(objective, fullgraph=True, backend="aot_eager")
    given = dict(zip(("student_features", "teacher_features"), features, strict=True))
    for name, value in compiled(*case, **given).terms.items():
        torch.testing.assert_close(value, objective(*case, **given).terms[name], msg=name)


def test_features_are_matched_by_name_whatever_their_order() -> None:
    student = {"early": torch.randn(4, 3), "late": torch.randn(4, 6)}
    teacher = {"late": torch.randn(4, 9), "early": torch.randn(4, 5)}
    case = random_case(4, 5, torch.float32)
    total = Objective({"sp": 1.0})(*case, student_features=student, teacher_features=teacher).total
    torch.testing.assert_close(total, sum(F.sp(student[tap], teacher[tap]) for tap in ("early", "late")))


def test_numbers_of_numpy_are_weights() -> None:
    case = random_case()
    objective = Objective({"kd": {"weight": np.float32(0.5), "warmup_epochs": np.int64(1)}})
    torch.testing.assert_close(objective(*case).total, 0.5 * F.kd(case.student, case.teacher))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=["deepcopy", "pickle"])
def test_copies_are_whole_and_apart(copied: Callable[[Objective], Objective]) -> None:
    case = random_case()
    objective = Objective({"ce": 0.1, "dkd": {"weight": 2.0, "warmup_epochs": 20}}, unlabelled="teacher")
    other = copied(objective)
    objective.set_epoch(19)
    assert objective(*case).total > other(*case).total
    other.set_epoch(19)
    torch.testing.assert_close(other(*case), objective(*case))


UNLABELLED = [1, 4]


def half_labelled() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    case = random_case(6, 5)
    target = case.target.clone()
    target[UNLABELLED] = -100
    return case.student, case.teacher, target, case.target


@pytest.mark.parametrize("options", [{}, {"label_weight": 0.7, "temperature": 2.0}, {"top_k": 3}])
def test_unlabelled_rows_are_learnt_in_the_teachers_own_order_where_that_is_asked_for(options: dict[str, Any]) -> None:
    student, teacher, target, _ = half_labelled()
    known = target != -100
    ours = Objective({"pld": options}, unlabelled="teacher")(student, teacher, target).total
    labelled = F.pld(student[known], teacher[known], target[known], reduction="sum", **options)
    options.pop("label_weight", None)
    others = F.pld(student[~known], teacher[~known], reduction="sum", **options)
    torch.testing.assert_close(ours, (labelled + others) / 6)


def test_soft_targets_without_a_label_are_rows_of_zeros_and_cost_the_same() -> None:
    student, teacher, target, _ = half_labelled()
    soft = torch.nn.functional.one_hot(target.clamp(min=0), 5).float() * (target >= 0)[:, None]
    objective = Objective({"ce": 0.3, "pld": {"label_weight": 0.5}, "kd": 1.0}, unlabelled="teacher")
    hard, ours = objective(student, teacher, target), objective(student, teacher, soft)
    for name, value in hard.terms.items():
        torch.testing.assert_close(ours.terms[name], value, msg=name)


def test_terms_without_a_label_take_every_row_and_those_with_one_the_labelled_rows() -> None:
    student, teacher, target, _ = half_labelled()
    known = target != -100
    terms = Objective({"ce": 1.0, "kd": 1.0, "dist": 1.0, "dkd": 1.0}, unlabelled="teacher")(student, teacher, target)
    torch.testing.assert_close(terms.terms["kd"], F.kd(student, teacher))
    torch.testing.assert_close(terms.terms["dist"], F.dist(student, teacher))
    torch.testing.assert_close(terms.terms["ce"], F.cross_entropy(student[known], target[known]))
    torch.testing.assert_close(terms.terms["dkd"], F.dkd(student[known], teacher[known], target[known]))


def test_masked_rows_stay_masked_and_accumulated_parts_add_up() -> None:
    student, teacher, target, _ = half_labelled()
    objective = Objective({"pld": 1.0, "kd": 1.0}, unlabelled="teacher")
    mask = torch.tensor([True, True, False, True, False, True])
    ours = objective(student, teacher, target, mask=mask).terms
    alone = objective(student[mask], teacher[mask], target[mask]).terms
    for name, value in alone.items():
        torch.testing.assert_close(ours[name], value, msg=name)
    parts = [objective(student[i : i + 2], teacher[i : i + 2], target[i : i + 2], num_items=6).total for i in (0, 2, 4)]
    torch.testing.assert_close(sum(parts), objective(student, teacher, target).total)


def test_a_batch_without_any_label_still_teaches() -> None:
    student, teacher, target, _ = half_labelled()
    student = student.clone().requires_grad_()
    none = torch.full_like(target, -100)
    total = Objective({"ce": 1.0, "pld": 1.0}, unlabelled="teacher")(student, teacher, none).total
    torch.testing.assert_close(total, F.pld(student, teacher))
    total.backward()
    assert student.grad is not None
    assert student.grad.abs().sum() > 0
    assert Objective({"ce": 1.0, "pld": 1.0})(student, teacher, none).total == 0


def test_another_way_with_unlabelled_rows_gets_a_sentence() -> None:
    with pytest.raises(InputError) as caught:
        Objective({"pld": 1.0}, unlabelled="teachr")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "An objective cannot take unlabelled rows as 'teachr'; did you mean 'teacher'? (choices: ignore, teacher)."
    )
