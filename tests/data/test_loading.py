"""Batches that are read when wanted: a function of (seed, epoch, sample), whoever reads them."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.loader import VIEWS, verdict
from plackett.data import Batch
from plackett.data.folders import open_pictures
from plackett.data.loading import Augmentation, Mix, PictureBatches
from plackett.data.sight import Sight
from plackett.data.source import Source
from tests.data import drawn

SIGHT = Sight(16)


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Source:
    found = open_pictures(drawn.folder(tmp_path_factory.mktemp("drawn"))).train
    assert found is not None
    return found


def same(one: Batch, other: Batch) -> bool:
    pairs = ((one.inputs, other.inputs), (one.targets, other.targets), (one.indices, other.indices))
    return all(torch.equal(a, b) for a, b in pairs)


def stream(source: Source, size: int = 5, seed: int = 3, **options: Any) -> PictureBatches:
    return PictureBatches(source, size, seed, SIGHT, **options)


def test_an_epoch_shows_every_picture_once_and_begins_anywhere(train: Source) -> None:
    given = stream(train)
    epoch = list(given.epoch(2))
    assert [len(batch.targets) for batch in epoch] == [5, 5, 5, 3]
    assert len(given) == 4
    assert torch.cat([batch.indices for batch in epoch]).sort().values.equal(torch.arange(18))
    assert all(same(a, b) for a, b in zip(given.epoch(2, start=2), epoch[2:], strict=True))
    assert all(torch.equal(train.targets[batch.indices], batch.targets) for batch in epoch)
    assert not same(next(given.epoch(1)), epoch[0])
    assert not same(next(stream(train, seed=4).epoch(2)), epoch[0])


def test_any_pictures_of_any_epoch_are_made_again(train: Source) -> None:
    given = stream(train)
    batch = list(given.epoch(3))[1]
    assert same(given.replay(batch.indices, 3), batch)
    part = given.replay(batch.indices[[3, 1]], 3)
    assert torch.equal(part.inputs, batch.inputs[[3, 1]])


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_give_the_same_bits(train: Source, workers: int) -> None:
    here = stream(train, augment=Augmentation(jitter=0.4, erase=0.5))
    there = stream(train, augment=Augmentation(jitter=0.4, erase=0.5), workers=workers)
    for epoch in (0, 1):
        assert all(same(a, b) for a, b in zip(here.epoch(epoch), there.epoch(epoch), strict=True))
    there.close()


def test_an_epoch_that_was_left_half_way_leaves_no_trace(train: Source) -> None:
    given, here = stream(train, workers=2), stream(train)
    outer = given.epoch(0)
    first = next(outer)
    inner = next(iter(given.epoch(0, 2)))  # while another is under way, as when a bad step is looked at
    second = next(outer)
    expected = list(here.epoch(0))
    assert same(first, expected[0])
    assert same(inner, expected[2])
    assert same(second, expected[1])
    del outer
    assert all(same(a, b) for a, b in zip(given.epoch(5), here.epoch(5), strict=True))
    given.close()


def test_mixed_batches_are_made_again_whole_or_in_part(train: Source) -> None:
    given = stream(train, size=6, mix=Mix())
    epoch = list(given.epoch(1))
    for batch in epoch:
        assert batch.targets.shape == (len(batch.indices), 3)
        torch.testing.assert_close(batch.targets.sum(-1), torch.ones(len(batch.indices)))
    both = [epoch[0].indices[[4, 0]], epoch[2].indices[[1]]]
    some = given.replay(torch.cat(both), 1)
    expected = [(epoch[0], [4, 0]), (epoch[2], [1])]
    assert torch.equal(some.inputs, torch.cat([batch.inputs[rows] for batch, rows in expected]))
    assert torch.equal(some.targets, torch.cat([batch.targets[rows] for batch, rows in expected]))
    assert same(next(given.epoch(1, 2)), epoch[2])
    assert len({int(batch.targets.amax(-1).mean() * 1e6) for batch in epoch}) > 1  # a share of its own each


def test_the_page_shows_the_committed_rates() -> None:
    root = Path(__file__).parent.parent.parent
    page = (root / "docs" / "data.md").read_text()
    with (root / "benchmarks" / "results" / "loader-amd-epyc-2.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        rate = f"{row['pictures_s']} [{row['low']}, {row['high']}]"
        assert f"| {row['view']} | {row['loader']} | {rate} | {row['processor_ms']} |" in page
    said = [verdict([row for row in rows if row["view"] == view]) for view in VIEWS]
    numbers = [re.findall(r"(\d\.\d\d) x", each) for each in said]
    (rate, cost), (test_rate, test_cost) = numbers
    shown = " ".join(page.split())
    assert f"({rate} x the pictures a second of timm's faster one, {cost} x its processor time)" in shown
    assert f"in a test ours is ahead ({test_rate} x, {test_cost} x)" in shown
