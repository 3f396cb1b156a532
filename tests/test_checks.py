"""Every mistake gets a sentence: what, where, and what to do."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import plackett
from plackett import InputError, Objective
from plackett import functional as F
from plackett.modules import KDLoss, PLDLoss

S, T, Y = torch.zeros(4, 5), torch.zeros(4, 5), torch.tensor([0, 1, 2, 3])
HALF = torch.full((4, 5), 0.2)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "class counts differ": (
        lambda: F.pld(torch.zeros(4, 37), torch.zeros(4, 1000), Y),
        "Teacher has 1000 classes, student 37. pld compares them class by class: give both the same classes in the same "
        "order, with -inf in the teacher where it does not offer one.",
    ),
    "batches differ": (
        lambda: F.kd(S, torch.zeros(3, 5)),
        "kd: teacher logits have shape [3, 5], student logits [4, 5]; they must be of the same batch.",
    ),
    "target of the wrong shape": (
        lambda: F.pld(S, T, torch.zeros(4, 1, dtype=torch.long)),
        "pld: target has shape [4, 1], but the student's logits [4, 5] need one label a row, [4].",
    ),
    "a column of labels for cross-entropy": (
        lambda: F.cross_entropy(S, torch.zeros(3, dtype=torch.long)),
        "cross_entropy: target has shape [3], but the student's logits [4, 5] need one label a row, [4].",
    ),
    "labels as floats": (
        lambda: F.pld(S, T, Y.float()),
        "pld: a torch.float32 target is a probability a class and must have the student's shape [4, 5], not [4]; for "
        "labels use torch.int64.",
    ),
    "labels as bools": (
        lambda: F.pld(S, T, Y.bool()),
        "pld: target must hold integer labels or float probabilities, not torch.bool.",
    ),
    "label too large": (
        lambda: F.pld(S, T, torch.tensor([0, 1, 5, 2])),
        "pld: label 5 at [2] is out of range: the logits have 5 classes, so labels go from 0 to 4 (or -100, which is "
        "ignored).",
    ),
    "label negative": (
        lambda: F.cross_entropy(S, torch.tensor([0, -1, 1, 2])),
        "cross_entropy: label -1 at [1] is out of range: the logits have 5 classes, so labels go from 0 to 4 (or -100, which is "
        "ignored).",
    ),
    "label out of range in a batch of sequences": (
        lambda: F.pld(torch.zeros(2, 3, 4), torch.zeros(2, 3, 4), torch.tensor([[0, 1, 2], [3, 9, 0]])),
        "pld: label 9 at [1, 1] is out of range: the logits have 4 classes, so labels go from 0 to 3 (or -100, which is "
        "ignored).",
    ),
    "temperature of 0": (
        lambda: F.pld(S, T, Y, temperature=0),
        "pld: temperature must be above 0 and finite, not 0; 1 leaves the logits as they are.",
    ),
    "temperature infinite": (
        lambda: F.kd(S, T, temperature=math.inf),
        "kd: temperature must be above 0 and finite, not inf; 1 leaves the logits as they are.",
    ),
    "temperature as a word": (lambda: F.kd(S, T, temperature="4"), "kd: temperature must be a number, not str."),
    "temperature of 0 in a module": (
        lambda: KDLoss(temperature=-1.0),
        "kd: temperature must be above 0 and finite, not -1.0; 1 leaves the logits as they are.",
    ),
    "unknown weights": (
        lambda: F.pld(S, T, Y, weights="techer"),
        "pld: unknown weights 'techer'; did you mean 'teacher'? (choices: position, teacher, uniform).",
    ),
    "weights of another length": (
        lambda: F.pld(S, T, Y, weights=torch.ones(4)),
        "pld: weights has 4 entries, but there are 5 classes; give one a rank.",
    ),
    "weights a row": (
        lambda: F.pld(S, T, Y, weights=torch.ones(4, 5)),
        "pld: weights must be a name or one float weight a rank, a tensor [C], not torch.float32 of shape [4, 5].",
    ),
    "negative weights": (
        lambda: F.pld(S, T, Y, weights=torch.tensor([1.0, 1, 1, 1, -0.5])),
        "pld: weights holds -0.5; a weight is at least 0, or the loss is not convex.",
    ),
    "label_weight without a target": (
        lambda: F.pld(S, T, label_weight=1.0),
        "pld: label_weight raises the label's own choice, so it needs a target; target is None.",
    ),
    "negative label_weight": (
        lambda: F.pld(S, T, Y, label_weight=-1.0),
        "pld: label_weight must be at least 0, not -1.0.",
    ),
    "top_k of 0": (lambda: F.pld(S, T, Y, top_k=0), "pld: top_k must be a whole number, at least 1; not 0."),
    "unknown reduction": (
        lambda: F.pld(S, T, Y, reduction="avg"),
        "pld: unknown reduction 'avg'; choices: mean, none, sum.",
    ),
    "unknown implementation": (
        lambda: F.pld(S, T, Y, impl="eagr"),
        "pld: unknown impl 'eagr'; did you mean 'eager'?",
    ),
    "labels as student": (
        lambda: F.pld(Y, Y, Y),
        "pld: student logits must be floating point, not torch.int64; give logits, not labels.",
    ),
    "no classes": (
        lambda: F.pld(torch.zeros(4, 0), torch.zeros(4, 0), Y),
        "pld: student logits need at least one class in their last dimension, not [4, 0].",
    ),
    "an array": (lambda: F.pld(S.numpy(), T, Y), "pld: student must be a tensor, not ndarray."),
    "no teacher": (lambda: F.pld(S), "pld needs a teacher; it got none."),
    "too many tensors": (
        lambda: F.pld(S, T, Y, 4.0),
        "pld takes (student, teacher, target) by position, the rest by name; got 4.",
    ),
    "mask of integers": (
        lambda: F.kd(S, T, mask=Y),
        "kd: mask must be a bool tensor, True where a row counts; it is torch.int64 of shape [4].",
    ),
    "mask of another shape": (
        lambda: F.kd(S, T, mask=torch.ones(4, 5, dtype=torch.bool)),
        "kd: mask has shape [4, 5], but the student's rows are [4]; give one bool a row.",
    ),
    "num_items of 0": (
        lambda: F.kd(S, T, num_items=0),
        "num_items must be one finite number above 0 (how many rows the loss is divided by); not 0.",
    ),
    "soft target that does not sum to 1": (
        lambda: F.pld(S, T, HALF * 2),
        "pld: a soft target's row sums to 2; probabilities sum to 1.",
    ),
    "negative soft target": (
        lambda: F.cross_entropy(S, HALF - 0.4),
        "cross_entropy: a soft target holds -0.2; probabilities cannot be negative.",
    ),
    "soft target with more labels than are charged": (
        lambda: F.pld(S, T, torch.tensor([[0.4, 0.3, 0.2, 0.1, 0.0]]).expand(4, 5), max_labels=2),
        "pld: a soft target has 0.3 of its mass beyond its 2 largest classes, which would go uncharged; raise max_labels.",
    ),
    "soft target for dkd": (
        lambda: F.dkd(S, T, HALF),
        "dkd takes integer labels only, not torch.float32: it splits the classes into the label and the rest, which a "
        "soft target does not say. Give labels, or use pld, cross_entropy or kd.",
    ),
    "label that the teacher does not offer": (
        lambda: F.pld(S, T.index_fill(1, torch.tensor([2]), -math.inf), Y),
        "pld: the teacher does not offer label 2 (its logit at [2] is -inf), so its weight for it is 0; say what that "
        "pick is worth with label_weight, e.g. label_weight=1.0.",
    ),
    "label that the teacher does not offer, in ListMLE": (
        lambda: F.listmle(S, T.index_fill(1, torch.tensor([2]), -math.inf), Y),
        "listmle: the teacher does not offer label 2 (its logit at [2] is -inf), so its weight for it is 0; use pld and "
        "say what that pick is worth with label_weight, e.g. label_weight=1.0.",
    ),
    "teacher that offers nothing": (
        lambda: F.kd(S, T.index_fill(0, torch.tensor([3]), -math.inf)),
        "kd: the teacher offers no class in row [3] (all its logits are -inf); look at it, or mask that row.",
    ),
    "unknown divergence": (
        lambda: F.kd(S, T, divergence="forwards"),
        "kd: unknown divergence 'forwards'; did you mean 'forward'? (choices: forward, js, reverse).",
    ),
    "label smoothing above 1": (
        lambda: F.cross_entropy(S, Y, label_smoothing=1.5),
        "cross_entropy: label_smoothing must be between 0 and 1; not 1.5.",
    ),
    "unknown option of a module": (
        lambda: PLDLoss(temprature=4.0),
        "Loss 'pld' has no option 'temprature'; did you mean 'temperature'?",
    ),
    "unknown loss": (
        lambda: plackett.losses.create("pdl"),
        "There is no loss named 'pdl'; did you mean 'pld'?",
    ),
    "an empty objective": (
        lambda: Objective({}),
        'An objective needs at least one term, e.g. Objective({"pld": 1.0}).',
    ),
    "unknown term": (
        lambda: Objective({"kdd": 1.0}),
        "Objective term 'kdd' is not the name of a loss; did you mean 'kd'?",
    ),
    "unknown option of a term": (
        lambda: Objective({"kd": {"weight": 0.9, "tau": 2}}),
        "Objective term 'kd' has no option 'tau'; choices:",
    ),
    "weight that is no number": (
        lambda: Objective({"kd": {"weight": "0.9"}}),
        "Objective term 'kd': weight must be a finite number, not '0.9'.",
    ),
    "term without one number": (
        lambda: Objective({"kd": {"reduction": "none"}}),
        "Objective term 'kd': reduction='none' does not give one number to add up.",
    ),
    "standardize that is not possible": (
        lambda: Objective({"kd": {"standardize": "techer"}}),
        "Objective term 'kd': unknown standardize 'techer'; did you mean 'teacher'?",
    ),
    "features that were not given": (
        lambda: Objective({"at": 1000.0})(S, T, Y),
        "Objective term 'at' reads features; call the objective with student_features and teacher_features.",
    ),
    "features of different length": (
        lambda: F.at([torch.zeros(4, 3, 2, 2)] * 2, [torch.zeros(4, 3, 2, 2)] * 3),
        "at: the student gives 2 features, the teacher 3; give as many of each, layer by layer.",
    ),
    "misspelt option of a function": (
        lambda: F.pld(S, T, Y, temprature=2),
        "pld has no option 'temprature'; did you mean 'temperature'?",
    ),
    "option by position": (
        lambda: PLDLoss(4.0),
        "PLDLoss takes its options by name, e.g. temperature=4.0.",
    ),
    "student twice": (lambda: F.pld(S, T, Y, student=T), "pld got student twice: by position and by name."),
    "mask of floats with labels": (
        lambda: F.pld(S, T, Y, mask=torch.ones(4)),
        "pld: mask must be a bool tensor, True where a row counts; it is torch.float32 of shape [4].",
    ),
    "mask as a list in an objective": (
        lambda: Objective({"kd": 1.0})(S, T, Y, mask=[True] * 4),
        "objective: mask must be a tensor, not list.",
    ),
    "mask as a list of a feature loss": (
        lambda: F.sp(S, T, mask=[True] * 4),
        "sp: mask must be a bool tensor, one a row, not list.",
    ),
    "labels as a list in an objective": (
        lambda: Objective({"kd": 1.0})(S, T, [0, 1, 2, 3]),
        "objective: target must be a tensor, not list.",
    ),
    "standardized logits of another class count": (
        lambda: Objective({"kd": {"standardize": "both"}})(S, T[:, :4], Y),
        "Teacher has 4 classes, student 5. objective compares them class by class",
    ),
    "a term without its channels": (
        lambda: Objective({"fitnet": 1.0}),
        "Loss 'fitnet' needs student_channels; give it, e.g. student_channels=64.",
    ),
    "a term with a dot in its name": (
        lambda: Objective({"a.b": {"loss": "kd"}}),
        "Objective term 'a.b' needs another name: a word of letters, digits and _, like 'kd_soft'.",
    ),
    "a term with a taken name": (
        lambda: Objective({"type": {"loss": "kd"}}),
        "Objective term 'type' needs another name: a word of letters, digits and _, like 'kd_soft'.",
    ),
    "reduction of None": (
        lambda: F.pld(S, T, Y, reduction=None),
        "pld: reduction cannot be None; leave it out for its default.",
    ),
    "temperature of None in a module": (
        lambda: PLDLoss(temperature=None),
        "pld: temperature cannot be None; leave it out for its default.",
    ),
    "num_items a row": (
        lambda: F.pld(S, T, Y, num_items=torch.ones(3)),
        "num_items must be one finite number above 0 (how many rows the loss is divided by); not [3].",
    ),
    "num_items negative in a feature loss": (
        lambda: F.sp(S, T, num_items=-3),
        "num_items must be one finite number above 0 (how many rows the loss is divided by); not -3.",
    ),
    "weights as an array": (
        lambda: PLDLoss(weights=np.ones(5)),
        "pld: weights must be a name or one float weight a rank, a tensor [C], not ndarray.",
    ),
    "weights of NaN": (
        lambda: F.pld(S, T, Y, weights=torch.full((5,), math.nan)),
        "pld: weights holds nan; a weight is at least 0, or the loss is not convex.",
    ),
    "weights to be learnt": (
        lambda: F.pld(S, T, Y, weights=torch.ones(5, requires_grad=True)),
        "pld: weights are constants here, and no gradient goes to them; give weights.detach().",
    ),
    "a number as a word": (lambda: F.dkd(S, T, Y, beta="8"), "dkd: beta must be a number, not str."),
    "a number that is none": (lambda: F.dkd(S, T, Y, alpha=math.nan), "dkd: alpha must be finite, not nan."),
    "implementation as a number": (
        lambda: F.pld(S, T, Y, impl=3),
        "pld: impl must be a name, not int; see plackett.kernels.why.",
    ),
    "teacher of NaN": (
        lambda: F.pld(S, T * math.nan, Y),
        "pld: the teacher has NaN or inf in row [0] (its logits are not finite); look at it, or mask that row.",
    ),
    "soft target with a class that the teacher does not offer": (
        lambda: F.pld(S, T.index_fill(1, torch.tensor([2]), -math.inf), torch.eye(5)[[0, 1, 2, 3]]),
        "pld: a soft target gives class 2 a share, which the teacher does not offer (its logit is -inf), so its weight "
        "for it is 0; say what that pick is worth with label_weight, e.g. label_weight=1.0.",
    ),
    "soft target of NaN": (
        lambda: F.cross_entropy(S, HALF * math.nan),
        "cross_entropy: a soft target holds NaN; look at what made it, or mask that row.",
    ),
    "standardize of labels": (
        lambda: plackett.standardize(Y),
        "standardize takes a tensor of float logits, not torch.int64.",
    ),
    "float8 logits": (
        lambda: F.kd(S, T.to(torch.float8_e4m3fn)),
        "kd: teacher logits are torch.float8_e4m3fn, which holds too few digits to compute with; convert them, e.g. with "
        ".bfloat16().",
    ),
    "float8 soft target": (
        lambda: F.cross_entropy(S, HALF.to(torch.float8_e5m2)),
        "cross_entropy: a soft target must be float16, bfloat16, float32 or float64, not torch.float8_e5m2; convert it.",
    ),
    "sparse logits": (
        lambda: F.pld(S.to_sparse(), T, Y),
        "pld: student must be a dense tensor, not a sparse_coo one; pad it and mask, or call to_dense().",
    ),
    "nested logits": (
        lambda: F.kd(S, torch.nested.nested_tensor([S, S[:2]], layout=torch.jagged)),
        "kd: teacher must be a dense tensor, not a nested one; pad it and mask, or call to_dense().",
    ),
    "complex target": (
        lambda: F.pld(S, T, Y.to(torch.complex64)),
        "pld: target must hold integer labels or float probabilities, not torch.complex64.",
    ),
    "temperature that float32 cannot square": (
        lambda: F.kd(S, T, temperature=1e30),
        "kd: temperature must be from 1e-18 to 1e+18, whose squares float32 holds; not 1e+30.",
    ),
    "num_items infinite": (
        lambda: F.pld(S, T, Y, num_items=math.inf),
        "num_items must be one finite number above 0 (how many rows the loss is divided by); not inf.",
    ),
    "infinite weights": (
        lambda: F.pld(S, T, Y, weights=torch.full((5,), math.inf)),
        "pld: weights holds inf; a weight must be finite.",
    ),
    "weights elsewhere": (
        lambda: PLDLoss(weights=torch.ones(5)).to("meta")(S, T, Y),
        "pld: weights is on meta, student logits on cpu; move one.",
    ),
    "a flag as a word": (
        lambda: F.pld(S, T, Y, return_left_out="yes"),
        "pld: return_left_out must be True or False, not 'yes'.",
    ),
    "an option of a module at its call": (
        lambda: PLDLoss(temperature=4.0)(S, T, Y, temperature=2.0),
        "PLDLoss holds temperature=4.0 since it was made; make another one, or call plackett.functional.pld.",
    ),
    "debug with a word": (lambda: plackett.debug("off"), "debug takes True or False, not 'off'."),
    "no teacher's features": (lambda: F.at(torch.zeros(4, 3, 2, 2)), "at needs a teacher; it got none."),
    "a power below 1": (
        lambda: F.at(torch.zeros(4, 3, 2, 2), torch.zeros(4, 3, 2, 2), p=0.5),
        "at: p must be at least 1, not 0.5.",
    ),
    "features without channels": (
        lambda: F.sp(torch.zeros(4, 0), torch.zeros(4, 3)),
        "sp: the student's feature 0 holds nothing to compare, [4, 0].",
    ),
    "sparse features": (
        lambda: F.sp(S, T.to_sparse()),
        "sp: the teacher's feature 0 must be a dense tensor; call to_dense() or pad it.",
    ),
    "mask of features elsewhere": (
        lambda: F.sp(S, T, mask=torch.ones(4, dtype=torch.bool, device="meta")),
        "sp: mask is on meta, features on cpu; move one.",
    ),
    "channels that are none": (
        lambda: plackett.FitNetLoss(student_channels=3.0, teacher_channels=None),
        "fitnet: a number of channels must be a whole number above 0, not 3.0.",
    ),
    "batch norm as a word": (
        lambda: plackett.FitNetLoss(3, 3, batch_norm="no"),
        "fitnet: batch_norm must be True or False, not 'no'.",
    ),
    "variance as a word": (
        lambda: plackett.VIDLoss(3, 3, initial_variance="5"),
        "vid: initial_variance must be a finite number, not '5'.",
    ),
    "a loss that is a mapping": (
        lambda: Objective({"mine": {"loss": {"ce": 1.0}}}),
        "There is no loss named {'ce': 1.0}; choices:",
    ),
    "taps that are no names": (
        lambda: Objective({"at": {"taps": 3}}),
        "Objective term 'at': taps must be a list of features' names, not 3.",
    ),
    "a term named as modules are": (
        lambda: Objective({"training": {"loss": "kd"}}),
        "Objective term 'training' needs another name: a word of letters, digits and _, like 'kd_soft'.",
    ),
    "an epoch as a word": (
        lambda: Objective({"kd": {"warmup_epochs": 3}}).set_epoch("3"),
        "objective: epoch must be a number, not str.",
    ),
    "an epoch that is none": (
        lambda: Objective({"kd": {"warmup_epochs": 3}}).set_epoch(math.nan),
        "objective: epoch must be finite, not nan.",
    ),
    "ignore_index of an objective": (
        lambda: Objective({"kd": 1.0}, ignore_index="none"),
        "objective: ignore_index must be a whole number, not str.",
    ),
    "mask of another shape in an objective": (
        lambda: Objective({"kd": 1.0})(S, T, Y, mask=torch.ones(5, dtype=torch.bool)),
        "objective: mask has shape [5], but the student's rows are [4]; give one bool a row.",
    ),
    "mask of floats in an objective": (
        lambda: Objective({"kd": 1.0})(S, T, Y, mask=torch.ones(4)),
        "objective: mask must be a bool tensor, True where a row counts; it is torch.float32 of shape [4].",
    ),
    "a column of labels for an objective that reads none": (
        lambda: Objective({"kd": 1.0})(S, T, Y[:, None]),
        "objective: target has shape [4, 1], but the student's logits [4, 5] need one label a row, [4].",
    ),
    "an objective without a student": (
        lambda: Objective({"ce": 1.0})(None, None, Y),
        "objective: student must be a tensor, not NoneType.",
    ),
    "features of other names": (
        lambda: Objective({"sp": 1.0})(S, T, Y, student_features={"a": S}, teacher_features={"a": T, "b": T}),
        "Objective term 'sp': teacher_features has 'b', which student_features has not; say with 'taps' which features "
        "are compared.",
    ),
    "standardize of a number": (
        lambda: plackett.standardize(torch.tensor(1.0)),
        "standardize takes logits [..., C], not a single number.",
    ),
    "standardize with offered classes of another shape": (
        lambda: plackett.standardize(S, offered=torch.ones(3)),
        "standardize: offered must be one bool a class, [4, 5], not torch.float32 of shape [3].",
    ),
    "standardize with a word": (
        lambda: plackett.standardize(S, eps="a"),
        "standardize: eps must be a number, at least 0; not 'a'.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_sentence(mistake: str) -> None:
    call, sentence = MISTAKES[mistake]
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}"):
        call()


def test_an_unknown_option_is_pythons_own_kind_of_error_too() -> None:
    with pytest.raises(TypeError, match="did you mean 'temperature'"):
        F.pld(S, T, Y, temprature=4.0)
    with pytest.raises(TypeError, match="did you mean 'temperature'"):
        PLDLoss(temprature=4.0)


def test_numbers_of_numpy_are_numbers() -> None:
    ours = F.pld(S, T, Y, temperature=np.float32(4), top_k=np.int64(2))
    assert ours == F.pld(S, T, Y, temperature=4.0, top_k=2)


def test_unsigned_labels_are_no_ignore_index() -> None:
    """-100 in eight bits is 156."""
    student, teacher = torch.randn(2, 256), torch.randn(2, 256)
    for dtype in (torch.uint8, torch.uint16, torch.int16):
        labels = torch.tensor([156, 3], dtype=dtype)
        for loss in (F.pld(student, teacher, labels), Objective({"ce": 1.0})(student, target=labels).total):
            assert loss > 0
        torch.testing.assert_close(F.pld(student, teacher, labels), F.pld(student, teacher, labels.long()))


def test_ignored_and_masked_labels_are_not_looked_at() -> None:
    F.pld(S, T, torch.tensor([0, -100, 1, 2]))
    F.pld(S, T, torch.tensor([0, 999, 1, 2]), mask=torch.tensor([True, False, True, True]))
    F.pld(S, T, torch.tensor([0, 255, 1, 2]), ignore_index=255)


def test_int32_labels_are_labels() -> None:
    assert F.pld(S, T, Y.int()) == F.pld(S, T, Y)


def test_values_are_read_on_the_cpu_and_under_debug_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plackett.checks.values_are_read(torch.zeros(2))
    assert not plackett.checks.values_are_read(torch.zeros(2, device="meta"))
    monkeypatch.setattr(plackett.checks, "may_look", lambda *tensors: False)  # as on a device
    assert not plackett.checks.values_are_read(torch.zeros(2))
    F.pld(S, T * math.nan, Y)
    with plackett.debug(True):
        assert plackett.checks.values_are_read(torch.zeros(2))
        with pytest.raises(InputError, match="NaN or inf"):
            F.pld(S, T * math.nan, Y)
    assert not plackett.checks.values_are_read(torch.zeros(2))


@pytest.mark.parametrize("options", [{"reduction": "avg"}, {"temprature": 2.0}, {"weights": "techer"}])
def test_the_sentence_is_read_while_compiling_too(options: dict[str, Any]) -> None:
    step = torch.compile(lambda s, t, y: F.pld(s, t, y, **options), fullgraph=True, backend="eager")
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"InputError.*pld|UnknownOptionError.*pld"):
        step(S, T, Y)


def test_value_checks_are_skipped_while_compiling() -> None:
    @torch.compile(fullgraph=True, backend="eager")
    def read(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if plackett.checks.values_are_read(x) else x

    assert read(torch.zeros(1)).item() == 0
