"""AT, FitNet, PKT, RKD, SP and VID: by hand, against other formulas and references, and where networks go wrong."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

import plackett
from plackett import FitNetLoss, InputError, Objective, VIDLoss, reference
from plackett.functional import at, fitnet, pkt, rkd, sp
from plackett.losses.pairs import unit

Loss = Callable[..., Tensor]

FUNCTIONS: list[Loss] = [at, fitnet, pkt, rkd, sp]
BY_ROW: list[Loss] = [at, fitnet]
COUPLED: list[Loss] = [pkt, rkd, sp]


def maps(rows: int = 5, channels: int = 3, size: int = 4, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    return (
        torch.randn(rows, channels, size, size, dtype=dtype),
        torch.randn(rows, channels, size, size, dtype=dtype),
    )


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64).unsqueeze(-1)


# --- by hand, on two or three rows -----------------------------------------------------------------------------------


def test_at_by_hand() -> None:
    # Two channels, three positions. Student: mean squares (9 + 7, 0, 16) / 2 = (8, 0, 8), scaled (1, 0, 1) / sqrt 2.
    student = torch.tensor([[[3.0, 0.0, 0.0], [math.sqrt(7), 0.0, 4.0]]], dtype=torch.float64)
    # Teacher: (0, 4, 0) scaled (0, 1, 0). Squared differences 1/2 + 1 + 1/2, over three positions.
    teacher = torch.tensor([[[0.0, -2.0, 0.0]]], dtype=torch.float64)
    assert at(student, teacher).item() == pytest.approx(2 / 3, abs=1e-15)


def test_fitnet_by_hand() -> None:
    student = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]])
    teacher = torch.tensor([[1.0, 0.0, 0.0], [0.0, 3.0, 1.0]])
    assert fitnet(student, teacher).item() == pytest.approx((4 + 9 + 9) / 6)


def test_sp_by_hand() -> None:
    # G_s = [[1, 2], [2, 4]], rows (1, 2) / sqrt 5 both; G_t = [[1, -1], [-1, 1]], rows (1, -1) and (-1, 1) over sqrt 2.
    student, teacher = column(1.0, 2.0), column(1.0, -1.0)
    # |a - b|^2 = 2 - 2 a.b with a.b = -1 / sqrt 10 and +1 / sqrt 10: the two rows sum to 4; n^2 = 4.
    assert sp(student, teacher).item() == pytest.approx(1.0, abs=1e-15)


def test_pkt_by_hand() -> None:
    student = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)  # cosine 0: (1 + 0) / 2
    teacher = column(1.0, 3.0)  # cosine 1: (1 + 1) / 2
    # p = (1, 1/2) / 1.5 = (2/3, 1/3), q = (1/2, 1/2), in both rows; the mean over 4 pairs
    expected = 2 * (0.5 * math.log(0.5 / (2 / 3)) + 0.5 * math.log(0.5 / (1 / 3))) / 4
    assert pkt(student, teacher).item() == pytest.approx(expected, abs=1e-6)


def test_rkd_by_hand() -> None:
    student, teacher = column(0.0, 1.0, 3.0), column(0.0, 2.0, 3.0)
    # Distances 1, 3, 2 and 2, 3, 1 have mean 2: halves of (0-1, 0-2, 1-2). Differences 1/2, 0, 1/2, each pair twice.
    distance = 2 * (0.5 * 0.5**2 + 0 + 0.5 * 0.5**2) / 9
    # On a line every angle has cosine +1 or -1: at an end both others lie on one side, in the middle on two: no change.
    assert rkd(student, teacher, distance_weight=25.0).item() == pytest.approx(25 * distance, abs=1e-14)
    bent = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    # At row 1 the angle is straight in the teacher (-1) and right in the student (0): Huber of 1 is 1/2, twice.
    # At rows 0 and 2 it is 0 in the teacher (1) and 45 degrees in the student: (1 - 1 / sqrt 2)^2 / 2, four times.
    angle = (2 * 0.5 + 4 * 0.5 * (1 - 1 / math.sqrt(2)) ** 2) / 27
    assert rkd(bent, teacher, distance_weight=0.0).item() == pytest.approx(50 * angle, abs=1e-14)


def test_vid_by_hand() -> None:
    loss = VIDLoss(1, 2, initial_variance=4.0).double()
    with torch.no_grad():
        for layer, weights in zip(
            (0, 2, 4), ([1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]]), strict=True
        ):
            weight = loss.predictors[0][layer].weight
            weight.copy_(torch.tensor(weights).view_as(weight))
    # mu = (2 f, 3 f) for f > 0 and 0 below; f = 1: mu = (2, 3) against (4, 3); f = -1: mu = 0 against (0, 2); v = 4.
    student, teacher = column(1.0, -1.0), torch.tensor([[4.0, 3.0], [0.0, 2.0]], dtype=torch.float64)
    expected = ((4 + 0 + 0 + 4) / 4 + 4 * math.log(4)) / 2 / 4
    assert loss(student, teacher).item() == pytest.approx(expected, abs=1e-6)


def test_fitnet_loss_by_hand() -> None:
    loss = FitNetLoss(1, 1).double()
    with torch.no_grad():
        loss.convolutions[0].weight.fill_(2.0)
    # 2 f + b = (2, 6) + b: centred (-2, 2), standard deviation 2, so (-1, 1) after the norm and (0, 1) after ReLU.
    assert loss(column(1.0, 3.0), column(2.0, 0.0)).item() == pytest.approx((4 + 1) / 2, abs=1e-5)


# --- against other formulas and the reference ------------------------------------------------------------------------


def test_at_is_two_minus_twice_a_cosine() -> None:
    s, t = maps()
    cosine = F.cosine_similarity(s.pow(2).sum(1).flatten(1), t.pow(2).sum(1).flatten(1))
    torch.testing.assert_close(at(s, t), ((2 - 2 * cosine) / 16).mean())


def test_sp_is_a_sum_of_cosines() -> None:
    s, t = (x.flatten(1) for x in maps())
    cosine = F.cosine_similarity(s @ s.T, t @ t.T)
    torch.testing.assert_close(sp(s, t), (2 - 2 * cosine).sum() / 25)


def test_pkt_is_a_kl_divergence() -> None:
    s, t = (x.flatten(1) for x in maps())
    p, q = (F.cosine_similarity(x[:, None], x[None], dim=-1).add(1).div(2) for x in (s, t))
    p, q = (x / x.sum(-1, keepdim=True) for x in (p, q))
    torch.testing.assert_close(pkt(s, t, eps=0.0), F.kl_div(p.log(), q, reduction="sum") / 25)


def test_rkd_by_loops() -> None:
    s, t = (x.flatten(1) for x in maps(4, 2, 2))

    def relations(x: Tensor) -> tuple[dict[Any, float], dict[Any, float]]:
        n = range(len(x))
        d = {(i, j): math.dist(x[i].tolist(), x[j].tolist()) for i in n for j in n}
        mean = sum(d.values()) / (len(x) * (len(x) - 1))
        cos = {
            (i, j, k): float((x[j] - x[i]) @ (x[k] - x[i])) / (d[i, j] * d[i, k])
            for i in n for j in n for k in n if i not in (j, k)
        }  # fmt: skip
        return {ij: v / mean for ij, v in d.items()}, cos

    def huber(a: dict[Any, float], b: dict[Any, float]) -> float:
        differences = (abs(a[key] - b[key]) for key in a)
        return sum(x * x / 2 if x < 1 else x - 0.5 for x in differences)

    (d_s, a_s), (d_t, a_t) = relations(s), relations(t)
    expected = 3.0 * huber(d_s, d_t) / 4**2 + 7.0 * huber(a_s, a_t) / 4**3
    assert rkd(s, t, distance_weight=3.0, angle_weight=7.0).item() == pytest.approx(expected, rel=1e-12)


def test_vid_is_a_gaussian_likelihood() -> None:
    loss = VIDLoss(3, 6).double()
    s, _ = maps()
    t = torch.randn(5, 6, 4, 4, dtype=torch.float64)
    predictor = copy.deepcopy(loss.predictors[0])
    mean = predictor(s.flatten(2)).view_as(t)
    v = loss.variance(0).view(1, 6, 1, 1).expand_as(t)
    torch.testing.assert_close(loss(s, t), F.gaussian_nll_loss(mean, t, v, eps=1e-12))
    torch.testing.assert_close(loss(s, t), reference.vid(mean, loss.variance(0), t))


def test_fitnet_loss_has_the_published_regressor() -> None:
    """Convolution, batch norm, ReLU: the same numbers as torch's own modules in training."""
    loss = FitNetLoss(3, 6).double()
    s, _ = maps()
    t = torch.randn(5, 6, 4, 4, dtype=torch.float64)
    convolution = torch.nn.Conv2d(3, 6, 1).double()
    norm = torch.nn.BatchNorm2d(6).double()
    with torch.no_grad():
        convolution.weight.copy_(loss.convolutions[0].weight.unsqueeze(-1))
        convolution.bias.copy_(loss.convolutions[0].bias)
        loss.norms[0].weight.uniform_(0.5, 2.0)
        loss.norms[0].bias.normal_()
        norm.load_state_dict({**norm.state_dict(), **loss.norms[0].state_dict()})
    predicted = norm(convolution(s)).relu()
    torch.testing.assert_close(loss(s, t), reference.fitnet(predicted, t))
    plain = FitNetLoss(3, 3, batch_norm=False).double()
    expected = reference.fitnet(plain.convolutions[0](s.flatten(2)), t[:, :3].flatten(2))
    torch.testing.assert_close(plain(s, t[:, :3]), expected)


@pytest.mark.parametrize("name", ["at", "fitnet", "pkt", "rkd", "sp"])
def test_against_the_reference(name: str) -> None:
    s, t = maps()
    ours, truth = s.clone().requires_grad_(), s.clone().requires_grad_()
    a, b = getattr(plackett.functional, name)(ours, t), getattr(reference, name)(truth, t)
    (2 * a).backward()
    (2 * b).backward()
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-13)
    torch.testing.assert_close(ours.grad, truth.grad, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("loss", FUNCTIONS)
def test_finite_differences(loss: Loss) -> None:
    s, t = maps(4, 2, 2)
    mask = torch.tensor([True, True, False, True])
    assert gradcheck(lambda x: loss(x, t, mask=mask), s.requires_grad_())


@pytest.mark.parametrize("kind", [FitNetLoss, VIDLoss])
def test_finite_differences_reach_the_parameters(kind: Any) -> None:
    loss = kind(2, 3).double()
    s, t = torch.randn(4, 2, 2, dtype=torch.float64), torch.randn(4, 3, 2, dtype=torch.float64)
    names, values = zip(*loss.named_parameters(), strict=True)

    def value(x: Tensor, *parameters: Tensor) -> Any:
        return torch.func.functional_call(loss, dict(zip(names, parameters, strict=True)), (x, t))

    assert gradcheck(value, (s.requires_grad_(), *(v.detach().clone().requires_grad_() for v in values)))


# --- properties ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", FUNCTIONS)
def test_a_perfect_student_pays_nothing(loss: Loss) -> None:
    s, _ = maps()
    assert loss(s, s).item() == pytest.approx(0, abs=1e-12)


@given(st.integers(2, 6), st.floats(0.01, 100.0), st.integers(0, 10_000))
def test_relations_ignore_scale_rotation_and_width(rows: int, scale: float, seed: int) -> None:
    torch.manual_seed(seed)
    x = torch.randn(rows, 4, dtype=torch.float64)
    rotation = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64)).Q
    wider = F.pad(scale * (x @ rotation), (0, 3))
    for loss in COUPLED:
        assert loss(wider, x).item() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("loss", FUNCTIONS)
def test_lists_add_up(loss: Loss) -> None:
    (s1, t1), (s2, t2) = maps(), maps(size=3)
    torch.testing.assert_close(loss([s1, s2], (t1, t2)), loss(s1, t1) + loss(s2, t2))
    assert torch.equal(loss([s1], t1), loss(s1, t1))


@pytest.mark.parametrize("loss", FUNCTIONS)
def test_the_teacher_is_a_constant(loss: Loss) -> None:
    s, t = maps()
    t.requires_grad_()
    assert not loss(s, t).requires_grad
    loss(s.requires_grad_(), t).backward()
    assert t.grad is None


@pytest.mark.parametrize("loss", FUNCTIONS)
def test_masked_rows_reach_nobody(loss: Loss) -> None:
    s, t = maps()
    mask = torch.tensor([True, False, True, True, False])
    s[~mask], t[~mask] = torch.nan, torch.inf
    x = s.clone().requires_grad_()
    value = loss(x, t, mask=mask)
    value.backward()
    torch.testing.assert_close(value, loss(s[mask], t[mask]))
    assert torch.equal(x.grad[~mask], torch.zeros_like(x.grad[~mask]))
    assert bool(x.grad[mask].any())


@pytest.mark.parametrize("kind", [FitNetLoss, VIDLoss])
def test_masked_rows_reach_no_parameter(kind: Any) -> None:
    loss = kind(3, 3).double()
    s, t = maps()
    mask = torch.tensor([True, False, True, True, False])
    s[~mask], t[~mask] = torch.nan, torch.inf
    parameters = tuple(loss.parameters())
    masked = torch.autograd.grad(loss(s, t, mask=mask), parameters)
    short = torch.autograd.grad(loss(s[mask], t[mask]), parameters)
    torch.testing.assert_close(masked, short)
    torch.testing.assert_close(loss(s, t, mask=mask), loss(s[mask], t[mask]))


@pytest.mark.parametrize("loss", [*FUNCTIONS, FitNetLoss(3, 3), VIDLoss(3, 3)])
def test_nothing_counts_is_a_zero_with_a_graph(loss: Loss) -> None:
    s, t = maps(dtype=torch.float32)
    for rows in (5, 0):
        x = s[:rows].clone().requires_grad_()
        value = loss(x, t[:rows], mask=torch.zeros(rows, dtype=torch.bool))
        value.backward()
        assert value.item() == 0.0
        assert torch.equal(x.grad, torch.zeros_like(x))


@pytest.mark.parametrize("loss", FUNCTIONS)
def test_reductions(loss: Loss) -> None:
    s, t = maps()
    mask = torch.tensor([True, True, True, True, False])
    mean = loss(s, t, mask=mask)
    torch.testing.assert_close(loss(s, t, mask=mask, reduction="sum"), 4 * mean)
    torch.testing.assert_close(loss(s, t, mask=mask, num_items=8), mean / 2)
    with pytest.raises(InputError, match="mean or sum"):
        loss(s, t, reduction="none")


@pytest.mark.parametrize("loss", [*BY_ROW, VIDLoss(3, 3).double(), FitNetLoss(3, 3, batch_norm=False).double()])
def test_accumulation_equals_the_full_batch(loss: Loss) -> None:
    s, t = maps(7)
    parts = sum(loss(s[i : i + 3], t[i : i + 3], num_items=7) for i in range(0, 7, 3))
    torch.testing.assert_close(parts, loss(s, t))


@pytest.mark.parametrize("loss", [*FUNCTIONS, FitNetLoss(3, 3), VIDLoss(3, 3)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_its_own_rounding_away(loss: Loss, dtype: torch.dtype) -> None:
    s, t = (100 * x for x in maps(dtype=dtype))
    low, full = s.clone().requires_grad_(), s.float().requires_grad_()
    a, b = loss(low, t), loss(full, t.float())
    a.backward()
    b.backward()
    assert a.dtype == torch.float32
    assert torch.equal(a, b)
    assert torch.equal(low.grad, full.grad.to(dtype))


@pytest.mark.parametrize("loss", COUPLED)
def test_autocast_does_not_round_similarities(loss: Loss) -> None:
    s, t = maps(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = loss(s, t)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, loss(s, t))


@pytest.mark.parametrize("loss", FUNCTIONS)
def test_strides_and_expanded_rows(loss: Loss) -> None:
    s, t = maps()
    torch.testing.assert_close(loss(s.transpose(2, 3).contiguous().transpose(2, 3), t), loss(s, t))
    torch.testing.assert_close(loss(s, t[:1].expand(5, -1, -1, -1)), loss(s, t[:1].repeat(5, 1, 1, 1)))


@pytest.mark.parametrize("loss", [*FUNCTIONS, FitNetLoss(3, 3), VIDLoss(3, 3)])
def test_a_batch_of_one(loss: Loss) -> None:
    s, t = maps(1, dtype=torch.float32)
    x = s.requires_grad_()
    value = loss(x, t)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(x.grad).all()
    if loss in (pkt, rkd):  # a single row relates to nothing
        assert value.item() == 0.0


@pytest.mark.parametrize("loss", FUNCTIONS)
def test_rows_of_zeros_are_not_a_hole(loss: Loss) -> None:
    """What a dead layer gives; also all rows dead, in the student or in the teacher."""
    s, t = maps(dtype=torch.float32)
    for dead in ([0], [0, 1], [0, 1, 2, 3, 4]):
        x = s.clone()
        x[dead] = 0.0
        x.requires_grad_()
        y = t.clone()
        y[dead[-1]] = 0.0
        value = loss(x, y)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(x.grad).all()
        assert x.grad.abs().max() < 1e3


# --- RKD, which fell to 11 % in the paper ----------------------------------------------------------------------------


def test_coinciding_embeddings_neither_collapse_nor_explode() -> None:
    s, t = (torch.randn(8, 16) for _ in range(2))
    apart = s.clone().requires_grad_()
    rkd(apart, t).backward()
    usual = apart.grad.abs().max()
    for together in ([0, 1], [0, 1, 2], list(range(8))):
        x = s.clone()
        x[together] = s[0]
        x.requires_grad_()
        value = rkd(x, t)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(x.grad).all()
        assert x.grad.abs().max() < 2e3 * usual
        if len(together) == 8:
            assert not x.grad.any()
        else:
            assert x.grad[2:].any()


def test_published_rkd_explodes_where_ours_does_not() -> None:
    """The published direction of a coinciding pair is 0 / 1e-12, and so is its gradient."""
    t = torch.randn(6, 4, dtype=torch.float64)
    x = torch.randn(6, 4, dtype=torch.float64)
    x[1] = x[0]
    ours = x.clone().requires_grad_()
    rkd(ours, t, distance_weight=0.0).backward()
    published = x.clone().requires_grad_()
    sides = [F.normalize(y[None] - y[:, None], dim=2) for y in (published, t)]
    F.smooth_l1_loss(*(u @ u.transpose(1, 2) for u in sides)).backward()
    assert published.grad.abs().max() > 1e8
    assert 0 < ours.grad.abs().max() < 1e5


def test_a_coinciding_pair_is_driven_apart() -> None:
    """Gradient descent leaves the collapse: the loss falls below what it is with the pair together."""
    t = torch.randn(6, 4)
    x = torch.randn(6, 4)
    x[1] = x[0]
    x.requires_grad_()
    optimizer = torch.optim.Adam([x], lr=0.02)
    before = rkd(x, t).item()
    for _ in range(200):
        optimizer.zero_grad()
        rkd(x, t).backward()
        optimizer.step()
    assert (x[0] - x[1]).norm() > 0.1
    assert rkd(x, t).item() < 0.2 * before


# --- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [at, fitnet, FitNetLoss(3, 3), VIDLoss(3, 3)])
def test_the_larger_map_is_pooled(loss: Loss) -> None:
    big, small = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 4, 4)
    pooled = F.avg_pool2d(big, 2)
    torch.testing.assert_close(loss(big, small), loss(pooled, small))
    torch.testing.assert_close(loss(small, big), loss(small, pooled))
    line = torch.randn(2, 3, 8)
    torch.testing.assert_close(loss(line, line[..., ::2]), loss(F.avg_pool1d(line, 2), line[..., ::2]))


def test_channels_may_differ_where_only_relations_count() -> None:
    s, t = torch.randn(4, 3, 5, 5), torch.randn(4, 7, 5, 5)
    for loss in (at, pkt, rkd, sp):
        assert torch.isfinite(loss(s, t))


@pytest.mark.parametrize("loss", [*FUNCTIONS, FitNetLoss(3, 3), VIDLoss(3, 3)])
def test_mistakes_get_a_sentence(loss: Loss) -> None:
    s, t = maps(dtype=torch.float32)
    for student, teacher, sentence in (
        ([s, s], [t], "2 features, the teacher 1"),
        ([], [], "empty list"),
        (s, t[:3], "has 3 rows"),
        (s, "features", "must be a tensor or a list of tensors, not str"),
        ([None], [t], "must be a tensor, not NoneType"),
        (s.long(), t, "must be floats"),
        (s[:, 0, 0, 0], t, "must be floats"),
    ):
        with pytest.raises(InputError, match=sentence):
            loss(student, teacher)
    with pytest.raises(InputError, match="mask must be one bool a row"):
        loss(s, t, mask=torch.ones(4, dtype=torch.bool))
    with pytest.raises(InputError, match="mask must be one bool a row"):
        loss(s, t, mask=torch.ones(5))


@pytest.mark.parametrize("loss", [at, fitnet, FitNetLoss(3, 3), VIDLoss(3, 3)])
def test_maps_that_cannot_be_matched(loss: Loss) -> None:
    with pytest.raises(InputError, match="at least as large as the other in every direction"):
        loss(torch.randn(2, 3, 8, 4), torch.randn(2, 3, 4, 8))
    with pytest.raises(InputError, match="at least as large as the other in every direction"):
        loss(torch.randn(2, 3, 8), torch.randn(2, 3, 4, 4))


def test_at_needs_maps_and_fitnet_needs_channels() -> None:
    with pytest.raises(InputError, match="no spatial dimensions"):
        at(torch.randn(2, 3), torch.randn(2, 3))
    with pytest.raises(InputError, match=r"FitNetLoss\(student_channels=3, teacher_channels=5\)"):
        fitnet(torch.randn(2, 3), torch.randn(2, 5))


# --- the two with parameters -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FitNetLoss, VIDLoss])
def test_parameters_are_registered_saved_and_trained(kind: Any) -> None:
    loss = kind([3, 4], [5, 6])
    names = {name for name, _ in loss.named_parameters()}
    assert {p.shape[0] for p in loss.parameters()} >= {5, 6}
    assert names == set(loss.state_dict())
    twin = kind([3, 4], [5, 6])
    twin.load_state_dict(loss.state_dict())
    features = [torch.randn(6, 3, 4, 4), torch.randn(6, 4)], [torch.randn(6, 5, 4, 4), torch.randn(6, 6)]
    assert torch.equal(twin(*features), loss(*features))
    optimizer = torch.optim.Adam(loss.parameters(), lr=0.02)
    first = loss(*features).item()
    for _ in range(30):
        optimizer.zero_grad()
        loss(*features).backward()
        optimizer.step()
    assert all(p.grad is not None for p in loss.parameters())
    assert loss(*features).item() < first


@pytest.mark.parametrize("kind", [FitNetLoss, VIDLoss])
def test_wrong_channels_get_a_sentence(kind: Any) -> None:
    with pytest.raises(InputError, match=r"feature 0 has 6 channels, but .* teacher_channels=5"):
        kind(3, 5)(torch.randn(2, 3), torch.randn(2, 6))
    with pytest.raises(InputError, match="made for 2 layers, called with 1"):
        kind([3, 3], [5, 5])(torch.randn(2, 3), torch.randn(2, 5))
    with pytest.raises(InputError, match="names 2 layers, teacher_channels 1"):
        kind([3, 3], 5)
    with pytest.raises(InputError, match="whole number above 0"):
        kind(3, 0)
    with pytest.raises(InputError, match="mean or sum"):
        kind(3, 5, reduction="none")


def test_an_objective_passes_the_parameters_on() -> None:
    objective = Objective({"ce": 1.0, "fitnet": {"weight": 100.0, "student_channels": 3, "teacher_channels": 5}})
    assert sum(p.numel() for p in objective.parameters()) == 3 * 5 + 5 + 5 + 5
    total, terms = objective(
        torch.randn(4, 7),
        target=torch.tensor([0, 1, -100, 3]),
        student_features=torch.randn(4, 3, 2, 2),
        teacher_features=torch.randn(4, 5, 2, 2),
    )
    torch.testing.assert_close(total, terms["ce"] + 100 * terms["fitnet"])


def test_one_name_two_forms() -> None:
    """ "fitnet" is the module with its regressor; the plain function stands beside it."""
    assert isinstance(plackett.losses.create("fitnet", student_channels=2, teacher_channels=3), FitNetLoss)
    assert callable(plackett.functional.fitnet)
    assert plackett.losses.names().count("fitnet") == 1


def test_vid_starts_at_the_published_variance() -> None:
    loss = VIDLoss(2, 4)
    torch.testing.assert_close(loss.variance(0), torch.full((4,), 5.0))
    with pytest.raises(InputError, match="initial_variance"):
        VIDLoss(2, 4, initial_variance=0.0)


def test_vid_starts_at_a_large_variance_too() -> None:
    torch.testing.assert_close(VIDLoss(1, 2, initial_variance=1e6).variance(0), torch.full((2,), 1e6))


def test_unit_has_no_gradient_at_zero() -> None:
    x = torch.zeros(2, 3, requires_grad=True)
    unit(x).sum().backward()
    assert torch.equal(x.grad, torch.zeros(2, 3))


@pytest.mark.slow  # the first compilation of a process is
@pytest.mark.parametrize("loss", [rkd, FitNetLoss(3, 3)])
def test_compiles_as_one_graph(loss: Loss) -> None:
    s, t = maps(dtype=torch.float32)
    mask = torch.arange(5) != 2
    a, b = s.clone().requires_grad_(), s.clone().requires_grad_()
    torch.compile(loss, fullgraph=True)(a, t, mask=mask).backward()
    loss(b, t, mask=mask).backward()
    torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-6)
