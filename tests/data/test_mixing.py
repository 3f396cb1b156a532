"""Mixup and CutMix: timm's, but that every choice follows from a key, and that no label is made up."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor

from plackett.data.mixing import Blend, Mix, mixed, soft
from plackett.data.source import NO_LABEL
from plackett.errors import InputError

LABELS = torch.tensor([0, 1, 2, 0, 1, 3])


def pictures() -> Tensor:
    return torch.randn(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def ours(blend: Blend, labels: Tensor = LABELS) -> tuple[Tensor, Tensor]:
    x = pictures()
    return mixed((x, labels), (x.flip(0), labels.flip(0)), blend, 4)


def timms(share: float, cut: bool, centre: tuple[int, int] = (0, 0)) -> tuple[Tensor, Tensor]:
    from timm.data.mixup import Mixup

    made: Any = Mixup(mixup_alpha=0.0 if cut else 1.0, cutmix_alpha=1.0 if cut else 0.0, label_smoothing=0.0,
                      num_classes=4)  # fmt: skip
    with (
        mock.patch.object(np.random, "beta", return_value=share),
        mock.patch.object(np.random, "randint", side_effect=centre),
    ):
        x, y = made(pictures(), LABELS)
    return x, y


def test_mixup_is_timms() -> None:
    for given, expected in zip(ours(Blend(0.3)), timms(0.3, cut=False), strict=True):
        torch.testing.assert_close(given, expected)


@pytest.mark.parametrize("centre", [(8, 8), (1, 14), (0, 0)])
def test_cutmix_is_timms_also_where_the_rectangle_is_clipped(centre: tuple[int, int]) -> None:
    share = 0.4
    with (
        mock.patch("random.Random.betavariate", return_value=share),
        mock.patch("random.Random.randrange", side_effect=centre),
    ):
        blend = Mix(mixup=0.0).blend(1, 16)
    for given, expected in zip(ours(blend), timms(share, True, centre), strict=True):
        torch.testing.assert_close(given, expected)


def test_a_blend_follows_from_its_key_alone_and_is_drawn_as_it_should_be() -> None:
    mix = Mix(mixup=1.0, cutmix=1.0, probability=0.8, switch=0.25)
    drawn = [mix.blend(key, 32) for key in range(4000)]
    assert drawn == [mix.blend(key, 32) for key in range(4000)]
    assert sum(b.share < 1 for b in drawn) / 4000 == pytest.approx(0.8, abs=0.03)
    blended = [b for b in drawn if b.share < 1]
    assert sum(b.box is not None for b in blended) / len(blended) == pytest.approx(0.25, abs=0.03)
    by_mixup = [b.share for b in blended if b.box is None]
    assert np.mean(by_mixup) == pytest.approx(0.5, abs=0.02)  # Beta(1, 1) is uniform
    assert np.var(by_mixup) == pytest.approx(1 / 12, abs=0.005)
    for blend in drawn:
        if blend.box is not None:
            top, bottom, left, right = blend.box
            assert blend.share == 1 - (bottom - top) * (right - left) / 32**2


@pytest.mark.parametrize("blend", [Blend(0.3), Blend(0.75, (0, 8, 0, 8))])
def test_a_picture_without_a_label_is_mixed_with_another_such_only(blend: Blend) -> None:
    labels = torch.tensor([0, NO_LABEL, 2, NO_LABEL, NO_LABEL, 3])  # pairs: 0 with 5, 1 with 4, 2 with 3
    x, y = ours(blend, labels)
    everywhere, targets = ours(blend)
    assert torch.equal(x[[0, 1, 4, 5]], everywhere[[0, 1, 4, 5]])
    assert torch.equal(x[[2, 3]], pictures()[[2, 3]])
    assert torch.equal(y[[0, 5]], targets[[0, 5]])
    assert torch.equal(y[[1, 2, 3, 4]], soft(labels, 4)[[1, 2, 3, 4]])
    assert y.sum(-1).tolist() == pytest.approx([1, 0, 1, 0, 0, 1])


def test_the_mistakes() -> None:
    for options, sentence in (
        ({"mixup": -1.0}, "The alpha of mixup is at least 0, not -1."),
        ({"mixup": 0.0, "cutmix": 0.0}, "Mixing needs an alpha above 0 for mixup or for cutmix."),
        ({"switch": 2.0}, "switch is how often it happens, from 0 to 1, not 2."),
    ):
        with pytest.raises(InputError) as caught:
            Mix(**options)
        assert str(caught.value) == sentence
