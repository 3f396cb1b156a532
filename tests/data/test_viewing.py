"""What a network is shown: timm's own bytes, in a test and for a crop."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from PIL import Image
from timm.data import create_transform
from timm.data.transforms import RandomResizedCropAndInterpolation

from plackett.data.draws import Draws
from plackett.data.normalise import Normalise
from plackett.data.sight import Sight
from plackett.data.viewing import Augmentation, crop, plain_view, random_view
from plackett.errors import InputError
from tests.data import drawn

SIZES = [(300, 200), (200, 301), (64, 64), (37, 90), (257, 256), (20, 13)]


def picture(width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(width * height).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(pixels)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sight", [
    Sight(64), Sight(61, crop=0.9), Sight(96, crop=1.0, interpolation="bilinear"), Sight(50, crop=0.95),
])  # fmt: skip
def test_the_view_of_a_test_is_timms_to_the_byte(size: tuple[int, int], sight: Sight) -> None:
    options: dict[str, Any] = {
        "input_size": sight.size, "crop_pct": sight.crop, "interpolation": sight.interpolation,
        "mean": sight.mean, "std": sight.std,
    }  # fmt: skip
    image = picture(*size)
    ours = torch.from_numpy(plain_view(image, sight).copy()).permute(2, 0, 1)
    assert torch.equal(ours, create_transform(**options, normalize=False)(image))
    normalised = Normalise(sight.mean, sight.std)(ours[None])[0]
    torch.testing.assert_close(normalised, create_transform(**options)(image), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("size", SIZES)
def test_a_random_part_is_timms_to_the_byte_where_timm_draws_the_same(size: tuple[int, int]) -> None:
    sight, augment = Sight(48), Augmentation(scale=(0.3, 1.0), flip=0.0)
    theirs = RandomResizedCropAndInterpolation(48, augment.scale, augment.ratio, "bicubic")
    image = picture(*size)
    for key in range(20):
        draws = Draws(key)
        with (
            mock.patch("random.uniform", draws.uniform),
            mock.patch("random.randint", lambda low, high, d=draws: low + d.below(high - low + 1)),
        ):
            expected = np.asarray(theirs(image))
        assert np.array_equal(random_view(image, sight, augment, key), expected)


def test_crops_have_the_areas_and_shapes_that_were_asked_for() -> None:
    augment = Augmentation(scale=(0.2, 0.6), ratio=(0.5, 2.0))
    boxes = [crop(400, 300, augment, Draws(key)) for key in range(2000)]
    for left, top, right, bottom in boxes:
        assert 0 <= left < right <= 400
        assert 0 <= top < bottom <= 300
    sides = [(right - left, bottom - top) for left, top, right, bottom in boxes]
    areas, ratios = [w * h / 120_000 for w, h in sides], [math.log(w / h) for w, h in sides]
    assert min(areas) == pytest.approx(0.2, abs=0.01)
    assert max(areas) == pytest.approx(0.6, abs=0.01)
    assert -math.log(2) - 0.02 < min(ratios) < -0.6
    assert 0.6 < max(ratios) < math.log(2) + 0.02
    centres = np.mean([((left + right) / 800, (top + bottom) / 600) for left, top, right, bottom in boxes], axis=0)
    assert centres == pytest.approx([0.5, 0.5], abs=0.01)


def test_a_strip_that_no_crop_fits_gives_its_middle() -> None:
    assert crop(1000, 10, Augmentation(), Draws(1)) == (493, 0, 506, 10)
    assert crop(10, 1000, Augmentation(), Draws(1)) == (0, 493, 10, 506)
    assert plain_view(picture(1000, 2), Sight(32)).shape == (32, 32, 3)


def test_flips_erasing_and_colours_happen_as_often_as_was_said_and_repeat() -> None:
    image, sight = drawn.picture(5), Sight(24)
    plain = Augmentation(scale=(1.0, 1.0), ratio=(1.3, 1.3), flip=0.0)
    whole = random_view(image, sight, plain, 0)

    def share(**options: Any) -> float:
        augment = Augmentation(scale=(1.0, 1.0), ratio=(1.3, 1.3), **{"flip": 0.0, **options})
        views = [random_view(image, sight, augment, key) for key in range(300)]
        again = [random_view(image, sight, augment, key) for key in range(300)]
        assert all(np.array_equal(a, b) for a, b in zip(views, again, strict=True))
        return float(np.mean([not np.array_equal(view, whole) for view in views]))

    assert np.array_equal(random_view(image, sight, Augmentation((1.0, 1.0), (1.3, 1.3), flip=1.0), 0), whole[:, ::-1])
    assert share(flip=0.3) == pytest.approx(0.3, abs=0.08)
    assert share(erase=0.25) == pytest.approx(0.25, abs=0.08)
    assert share(jitter=0.4) > 0.95
    before = torch.get_rng_state()
    assert share(rand_augment=9) > 0.5
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(("options", "sentence"), [
    ({"scale": (0.0, 1.0)}, "A crop's share of the area goes from above 0 to at most 1, not 0 to 1."),
    ({"ratio": (2.0, 1.0)}, "A crop's width by height goes from above 0 upwards, not 2 to 1."),
    ({"flip": 1.5}, "flip is how often it happens, from 0 to 1, not 1.5."),
    ({"jitter": 1.0}, "Colours change by a share from 0 to below 1, not 1."),
    ({"rand_augment": 31}, "RandAugment's magnitude goes from 0 to 30, not to 31."),
])  # fmt: skip
def test_augmentations_that_cannot_be_get_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        Augmentation(**options)
    assert str(caught.value) == sentence
