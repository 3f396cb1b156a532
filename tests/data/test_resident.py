"""Batches made on the device: a function of (seed, epoch, sample), with the published augmentation."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from plackett.data import Normalise, Pictures, ResidentBatches, cifar100
from plackett.data.counter import Counter, below, mix
from plackett.errors import InputError
from tests.cifar import Cifar

PLAIN = Normalise((0.0, 0.0, 0.0), (1 / 255,) * 3)  # leaves pixels as they are


def pictures(n: int = 20, size: int = 8) -> Pictures:
    pixels = torch.randint(1, 256, (n, 3, size, size + 2), dtype=torch.uint8)
    return Pictures(pixels, torch.arange(n) % 4, ("a", "b", "c", "d"))


def stream(given: Pictures | None = None, size: int = 6, seed: int = 3, **options: object) -> ResidentBatches:
    return ResidentBatches(pictures() if given is None else given, size, seed, PLAIN, **options)  # type: ignore[arg-type]


def python_mix(x: int) -> int:
    """As it is published, in C, on unsigned 32-bit numbers."""
    x ^= x >> 16
    x = x * 0x21F0AAAD % 2**32
    x ^= x >> 15
    x = x * 0xD35A2D97 % 2**32
    return x ^ x >> 15


def test_the_hash_is_the_published_one_and_the_same_in_tensors() -> None:
    places = [0, 1, 2, 12345, 2**31 - 1, 2**31, 2**32 - 1]
    assert [mix(place) for place in places] == [python_mix(place) for place in places]
    assert mix(torch.tensor(places)).tolist() == [python_mix(place) for place in places]
    wide = torch.arange(1 << 16)
    assert len(mix(wide).unique()) == len(wide)
    assert 0 <= int(mix(wide).min()) <= int(mix(wide).max()) < 2**32


def test_an_epoch_on_the_device_gives_the_bits_of_a_number() -> None:
    samples = torch.arange(1000)
    counter = Counter(5, "order")
    assert torch.equal(counter.bits(7, samples), counter.bits(torch.tensor(7), samples))
    assert counter.bits(0, torch.arange(4)).tolist() == [735088968, 2528155751, 3423886010, 731810933]
    assert not torch.equal(counter.bits(7, samples), Counter(5, "crop").bits(7, samples))
    assert not torch.equal(counter.bits(7, samples), Counter(6, "order").bits(7, samples))


def test_crops_and_flips_are_fair_and_independent() -> None:
    """Chi-squared over 81 offsets and the flip, in one epoch, and for one sample over epochs."""
    counter, mirror = Counter(1, "crop"), Counter(1, "mirror")
    n = 81 * 2 * 300
    for epoch, samples in ((4, torch.arange(n)), (torch.arange(n), torch.tensor(17))):
        crop, flip = counter.bits(epoch, samples), mirror.bits(epoch, samples) & 1  # type: ignore[arg-type]
        cells = (below(crop, 9) * 9 + below(crop >> 16, 9)) * 2 + flip
        counts = cells.bincount(minlength=162).double()
        assert ((counts - 300) ** 2 / 300).sum() < 230  # 161 degrees of freedom: mean 161, deviation 18


def test_an_epoch_shows_every_picture_once_in_an_order_of_its_own() -> None:
    given = stream(pictures(50))
    orders = [torch.cat([b.indices for b in given.epoch(epoch)]) for epoch in range(4)]
    assert all(order.sort().values.tolist() == list(range(50)) for order in orders)
    assert len({tuple(order.tolist()) for order in orders}) == 4
    assert torch.equal(given.order(2), given.order(torch.tensor(2)))
    assert [len(b.targets) for b in stream(pictures(20)).epoch(0)] == [6, 6, 6, 2]


def test_what_is_dropped_differs_from_epoch_to_epoch() -> None:
    given = stream(pictures(20), drop_last=True)
    assert len(given) == 3
    shown = [set(torch.cat([b.indices for b in given.epoch(epoch)]).tolist()) for epoch in range(8)]
    assert all(len(each) == 18 for each in shown)
    assert len({frozenset(each) for each in shown}) > 1


def test_any_batch_is_made_without_those_before_it() -> None:
    given = stream()
    whole = list(given.epoch(9))
    (last,) = given.epoch(9, start=3)
    assert torch.equal(last.inputs, whole[3].inputs)
    again = stream(given.pictures).replay(whole[1].indices.flip(0), 9)
    assert torch.equal(again.inputs.flip(0), whole[1].inputs)
    assert torch.equal(again.targets.flip(0), whole[1].targets)
    assert not torch.equal(given.replay(whole[1].indices, 8).inputs, whole[1].inputs)


def expected(picture: Tensor, padding: int) -> list[Tensor]:
    """Every crop of the padded picture, and every crop mirrored."""
    padded, (height, width) = F.pad(picture, [padding] * 4), picture.shape[-2:]
    places = [(top, left) for top in range(2 * padding + 1) for left in range(2 * padding + 1)]
    crops = [padded[:, top : top + height, left : left + width] for top, left in places]
    return crops + [crop.flip(-1) for crop in crops]


@pytest.mark.parametrize(("padding", "flip"), [(2, True), (1, False), (0, True), (0, False)])
def test_a_picture_is_cropped_out_of_its_padding_and_mirrored(padding: int, flip: bool) -> None:
    given = stream(pictures(4), size=4, padding=padding, flip=flip)
    seen: list[set[int]] = [set() for _ in range(4)]
    for epoch in range(600):
        for batch in given.epoch(epoch):
            for picture, index in zip(batch.inputs, batch.indices.tolist(), strict=True):
                choices = expected(given.pictures.inputs[index].float(), padding)
                found = [i for i, choice in enumerate(choices) if torch.equal(choice, picture.round())]
                assert found
                seen[index].add(found[0])
    possible = (2 * padding + 1) ** 2 * (1 + flip)
    assert all(len(each) == possible for each in seen)


def test_black_is_padded_before_pixels_are_normalised(cifar: Cifar, tmp_path: object) -> None:
    normalise = cifar100.NORMALISE
    found = normalise(torch.zeros(1, 3, 1, 1, dtype=torch.uint8)).flatten()
    torch.testing.assert_close(found, torch.tensor([-0.5071 / 0.2675, -0.4867 / 0.2565, -0.4408 / 0.2761]))
    white = ResidentBatches(
        Pictures(torch.full((64, 3, 8, 8), 255, dtype=torch.uint8), torch.zeros(64).long(), ("a",)), 64, 0, normalise
    )
    values = torch.cat([b.inputs for b in white.epoch(0)])[:, 0].unique()
    torch.testing.assert_close(values, torch.tensor([-0.5071 / 0.2675, (1 - 0.5071) / 0.2675]))


def test_real_pictures_look_as_the_reference_augmentation_has_them(cifar: Cifar, tmp_path: object) -> None:
    data = cifar100.load(cifar100.prepare(cifar.binary, tmp_path, parts=cifar.parts).parent)  # type: ignore[arg-type]
    given = ResidentBatches(data.train, 16, 0, cifar100.NORMALISE)
    batch = next(iter(given.epoch(0)))
    assert batch.inputs.is_contiguous(memory_format=torch.channels_last)
    mean, std = (torch.tensor(v)[:, None, None] for v in (given.normalise.mean, given.normalise.std))
    pixels = (batch.inputs * std + mean).mul(255).round()
    for picture, index, target in zip(pixels, batch.indices, batch.targets, strict=True):
        assert any(torch.equal(choice, picture) for choice in expected(data.train.inputs[index].float(), 4))
        assert target == data.train.targets[index]


def test_shapes_are_static_and_the_host_is_not_asked() -> None:
    """On fake tensors a value that the host reads, or a shape that depends on one, is an error."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        pixels = torch.empty(20, 3, 8, 8, dtype=torch.uint8)
        targets = torch.empty(20, dtype=torch.long)
        made = object.__new__(Pictures)
        for name, value in (("inputs", pixels), ("targets", targets), ("classes", ("a",))):
            object.__setattr__(made, name, value)
        given = ResidentBatches(made, 6, 0, PLAIN)
        epoch = torch.empty((), dtype=torch.long)
        indices = given.order(epoch)[6:12]
        assert given.inputs(indices, epoch).shape == (6, 3, 8, 8)


@pytest.mark.gpu
def test_the_gpu_gives_the_cpus_bits() -> None:
    at_home = ResidentBatches(pictures(500, 32), 128, 1, cifar100.NORMALISE)
    abroad = ResidentBatches(at_home.pictures.to("cuda"), 128, 1, cifar100.NORMALISE)
    for one, other in zip(at_home.epoch(5), abroad.epoch(5), strict=True):
        assert torch.equal(one.indices, other.indices.cpu())
        assert torch.equal(one.inputs, other.inputs.cpu())


def test_mistakes_get_a_sentence() -> None:
    with pytest.raises(InputError, match=r"uint8 pixels, not torch\.float32; use Batches"):
        stream(Pictures(torch.zeros(2, 3, 4, 4), torch.zeros(2).long(), ("a",)))
    with pytest.raises(InputError, match="20 pictures do not fill one batch of 21"):
        stream(size=21, drop_last=True)
    with pytest.raises(InputError, match="at least 1 picture, not 0"):
        stream(size=0)
    with pytest.raises(InputError, match="There are no pictures"):
        stream(pictures().subset([]))
    with pytest.raises(InputError, match=r"Pictures must be \[N, 3, height, width\], not \[2, 1, 4, 4\]"):
        stream(Pictures(torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.zeros(2).long(), ("a",)))
    with pytest.raises(InputError, match="0 to 8 pixels outside, not 9"):
        stream(padding=9)
    with pytest.raises(InputError, match="A mean and a std above 0"):
        Normalise((0.5,), (0.0,))
    with pytest.raises(InputError, match="The pictures have 3 channels, but 1 are normalised"):
        Normalise((0.5,), (0.5,)).pictures(pictures())
