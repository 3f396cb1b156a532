"""Pictures a second beside timm's own loader: `python -m benchmarks.loader --data DIR`, on files of one's own.

Both read the same files, cut and resize them alike (`tests/data/test_viewing.py` compares the bytes), and give
normalised float32 batches. They take turns, an epoch each; workers stay from epoch to epoch. timm is measured with and
without its prefetcher. Beside the pictures a second stands the processor time of a picture, of all processes together,
which hardly depends on what else the machine does (Linux).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from benchmarks import written
from benchmarks.losses import RESULTS
from plackett.data.folders import open_pictures
from plackett.data.loading import Augmentation, PictureBatches, Viewed
from plackett.data.parts import Subset
from plackett.data.sight import Sight
from plackett.data.source import Source
from plackett.experiments import surroundings

Row = dict[str, object]
Epoch = Callable[[], int]  # goes through the pictures once and says how many it gave
VIEWS = {"training": "random crops, mirrored", "test": "the middle"}


def all_pictures(data: Path, repeat: int) -> tuple[Source, Path]:
    """The largest split, `repeat` times, and the folder that its class folders lie in."""
    opened = open_pictures(data)
    source = max((s for s in (opened.train, opened.val, opened.test) if s is not None), key=len)
    split = next((folder for folder in ("train", "val", "test") if source is getattr(opened, folder)), "")
    folder = data / split if (data / split).is_dir() else data
    return Subset(source, torch.arange(len(source)).repeat(repeat)), folder


def ours(source: Source, view: str, sight: Sight, size: int, workers: int) -> Epoch:
    epochs = iter(range(10**9))
    made = (
        PictureBatches(source, size, 0, sight, workers=workers, augment=Augmentation())
        if view == "training"
        else Viewed(source, sight, size=size, workers=workers)
    )

    def epoch() -> int:
        batches = made.epoch(next(epochs)) if isinstance(made, PictureBatches) else made.batches()
        return sum(len(batch.inputs) for batch in batches)

    return epoch


def timms(folder: Path, repeat: int, view: str, sight: Sight, size: int, workers: int, prefetcher: bool) -> Epoch:
    import timm.data
    from timm.data.readers import add_img_extensions

    add_img_extensions(".webp")  # which it leaves out unless it is told
    dataset: Any = timm.data.create_dataset("", str(folder))
    dataset.reader.samples = list(dataset.reader.samples) * repeat
    given: dict[str, Any] = {"crop_pct": sight.crop} if view == "test" else {"color_jitter": None}
    loader = timm.data.create_loader(
        dataset, (3, sight.size, sight.size), size, is_training=view == "training", num_workers=workers,
        interpolation=sight.interpolation, mean=sight.mean, std=sight.std, device=torch.device("cpu"),
        use_prefetcher=prefetcher, persistent_workers=workers > 0, **given,
    )  # fmt: skip
    return lambda: sum(len(inputs) for inputs, _ in loader)


def measured(given: argparse.Namespace, view: str) -> Iterator[Row]:
    sight = Sight(given.pixels)
    source, folder = all_pictures(given.data, given.repeat)
    common = (view, sight, given.batch, given.workers)
    loaders = {
        "plackett": ours(source, *common),
        "timm, prefetcher": timms(folder, given.repeat, *common, True),
        "timm, without": timms(folder, given.repeat, *common, False),
    }
    rates: dict[str, list[float]] = {name: [] for name in loaders}
    costs: dict[str, list[float]] = {name: [] for name in loaders}
    for turn in range(given.rounds + 1):  # the first starts the workers and fills the page cache
        for name, epoch in loaders.items():
            begun, used = time.perf_counter(), processor_time()
            count = epoch()
            if turn:
                rates[name].append(count / (time.perf_counter() - begun))
                costs[name].append(1000 * (processor_time() - used) / count)
    for name, found in rates.items():
        low, median, high = statistics.quantiles(found, n=4, method="inclusive")
        yield {
            "view": view, "loader": name, "workers": given.workers, "batch": given.batch, "pixels": given.pixels,
            "pictures": len(source), "epochs": len(found), "pictures_s": f"{median:.1f}", "low": f"{low:.1f}",
            "high": f"{high:.1f}", "processor_ms": f"{statistics.median(costs[name]):.2f}",
        }  # fmt: skip


def processor_time() -> float:
    """Seconds of this process and of its workers so far."""
    used = time.process_time()
    for child in multiprocessing.active_children():
        try:
            fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def verdict(rows: Sequence[Row]) -> str:
    """Ours against the better of timm's two, in pictures a second and in processor time a picture."""
    rates, costs = (
        {str(row["loader"]): float(str(row[key])) for row in rows} for key in ("pictures_s", "processor_ms")
    )
    fastest = max(rate for name, rate in rates.items() if name != "plackett")
    cheapest = min(cost for name, cost in costs.items() if name != "plackett")
    return (
        f"{rates['plackett'] / fastest:.2f} x timm's pictures a second, "
        f"{costs['plackett'] / cheapest:.2f} x its processor time a picture"
    )


def write(rows: Sequence[Row], out: Path, common: Row) -> Path:
    name = written.slug(f"{common['processor']} {common['cores']}")
    return written.write([row | common for row in rows], out / f"loader-{name}.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parser.add_argument("--data", type=Path, required=True, help="a folder of pictures in class folders")
    parser.add_argument("--repeat", type=int, default=1, help="times that the pictures make up an epoch")
    parser.add_argument("--rounds", type=int, default=5, help="epochs of each loader that count")
    parser.add_argument("--workers", type=int, default=cores, help="processes of each loader")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--pixels", type=int, default=224)
    parser.add_argument("--views", nargs="+", default=list(VIEWS), choices=list(VIEWS))
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the CSV goes")
    given = parser.parse_args()
    common: Row = {
        "processor": surroundings.processor(),
        "cores": cores,
        "load": f"{os.getloadavg()[0]:.1f}",
        "torch": torch.__version__,
        "timm": version("timm"),
        "pillow": version("pillow"),
        "plackett": surroundings.versions()["plackett"],
        "commit": surroundings.commit() or "",
        "date": datetime.now(UTC).date().isoformat(),
    }
    print(", ".join(f"{name} {value}" for name, value in common.items()), flush=True)
    rows: list[Row] = []
    for view in given.views:
        found = list(measured(given, view))
        rows += found
        for row in found:
            print("  " + "  ".join(f"{name} {value}" for name, value in row.items()))
        print(f"  {view} ({VIEWS[view]}): {verdict(found)}", flush=True)
    print(f"written to {write(rows, given.out, common)}")


if __name__ == "__main__":
    main()
