"""A stream of batches depends on (seed, epoch) and on nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from plackett.data import Batches, Pictures, Shift, derive, digits
from plackett.data.normalise import Normalise
from plackett.errors import InputError


def pictures(n: int = 10) -> Pictures:
    return Pictures(torch.rand(n, 1, 4, 4), torch.arange(n) % 3, ("a", "b", "c"))


def test_an_epoch_can_be_replayed_whatever_was_drawn_before() -> None:
    stream = Batches(pictures(), 4, seed=3, augment=Shift())
    first = [(b.inputs, b.indices) for b in stream.epoch(5)]
    list(stream.epoch(1))
    torch.rand(7)
    again = [(b.inputs, b.indices) for b in stream.epoch(5)]
    for (inputs, indices), (same, those) in zip(first, again, strict=True):
        assert torch.equal(inputs, same)
        assert torch.equal(indices, those)


def test_one_batch_can_be_rebuilt_from_its_pictures_and_its_epoch() -> None:
    stream = Batches(pictures(), 4, seed=3, augment=Shift())
    for batch in stream.epoch(2):
        again = stream.replay(batch.indices, batch.epoch)
        assert torch.equal(again.inputs, batch.inputs)
        assert torch.equal(again.targets, batch.targets)


def test_an_epoch_shows_every_picture_once_in_an_order_of_its_own() -> None:
    stream = Batches(pictures(50), 8, seed=0)
    orders = [torch.cat([b.indices for b in stream.epoch(e)]) for e in (0, 1)]
    assert all(order.sort().values.tolist() == list(range(50)) for order in orders)
    assert not torch.equal(orders[0], orders[1])
    other = torch.cat([b.indices for b in Batches(pictures(50), 8, seed=1).epoch(0)])
    assert not torch.equal(orders[0], other)


def test_a_stream_leaves_the_callers_random_numbers_alone() -> None:
    given = pictures()
    before = torch.get_rng_state()
    list(Batches(given, 4, seed=3, augment=Shift()).epoch(0))
    assert torch.equal(before, torch.get_rng_state())


def test_a_shift_moves_a_picture_and_brings_zeros_in() -> None:
    picture = torch.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    moved = Shift(1).apply(picture, torch.tensor([[0, 1]]))  # 0: down by one, 1: stays
    assert moved[0, 0].tolist() == [[0, 0, 0], [1, 2, 3], [4, 5, 6]]
    assert torch.equal(Shift(1).apply(picture, torch.tensor([[1, 1]])), picture)


def test_the_digits_are_split_into_strata_without_overlap() -> None:
    data = digits.load()
    assert (len(data.teacher), len(data.student), len(data.test)) == (1078, 150, 719)
    assert data.student.targets.bincount().tolist() == [15] * 10
    share = data.test.targets.bincount() / len(data.test)
    assert (share - 0.1).abs().max() < 0.01
    assert torch.equal(data.student.inputs, data.teacher.inputs[:150])
    both = torch.cat([data.teacher.inputs, data.test.inputs]).flatten(1)
    assert len(both.unique(dim=0)) == 1797  # every picture differs from every other, so none is on both sides


def test_the_split_is_seeded_and_fingerprinted() -> None:
    one, same, other = digits.load(), digits.load(), digits.load(seed=1)
    assert one.test.fingerprint() == same.test.fingerprint() != other.test.fingerprint()
    assert one.test.fingerprint() != one.teacher.fingerprint()


def test_seeds_do_not_collide_by_their_order_or_their_type() -> None:
    seeds = {derive(*parts) for parts in [(0, "a"), ("a", 0), (0, 1), (1, 0), (10,), ("10",), (1, 0, "a"), (10, "a")]}
    assert len(seeds) == 8


def test_mistakes_get_a_sentence() -> None:
    with pytest.raises(InputError, match="There are 2 pictures and 3 labels"):
        Pictures(torch.zeros(2, 1, 2, 2), torch.zeros(3, dtype=torch.long), ("a",))
    with pytest.raises(InputError, match="Labels run from 0 to 5, but there are 2 classes"):
        Pictures(torch.zeros(2, 1, 2, 2), torch.tensor([0, 5]), ("a", "b"))
    with pytest.raises(InputError, match="A batch needs at least 1 picture, not 0"):
        Batches(pictures(), 0, seed=0)
    with pytest.raises(InputError, match="There are no pictures"):
        Batches(pictures().subset([]), 2, seed=0)
    with pytest.raises(InputError, match="between 10 and 1078, not 5000"):
        digits.load(labelled=5000)


def test_without_scikit_learn_the_sentence_says_what_to_install() -> None:
    code = "import sys; sys.modules['sklearn'] = None\nfrom plackett.data import digits\ndigits.load()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "The data set of digits needs 'sklearn', which is not installed: pip install 'plackett[demo]'." in run.stderr


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (1, 1, 1, 1), (3, 3, 1, 7), (0, 3, 4, 4)])
@pytest.mark.parametrize("kind", [torch.uint8, torch.float32])
def test_pixels_are_normalised_to_the_bit_in_any_layout_and_left_as_they_are(
    layout: torch.memory_format, shape: tuple[int, ...], kind: torch.dtype
) -> None:
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8).to(kind).to(memory_format=layout)
    before = pixels.clone()
    normalise = Normalise((0.485, 0.456, 0.406)[: shape[1]], (0.229, 0.224, 0.225)[: shape[1]])
    mean, std = normalise.constants("cpu")
    made = normalise(pixels)
    assert torch.equal(made, (before.float() - mean) / std)
    assert made.stride() == before.float().stride()
    assert torch.equal(pixels, before)
