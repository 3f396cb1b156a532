"""Reads epochs for as long as it is let, with workers: run as a process that a test kills or interrupts."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time

from plackett.data.folders import open_pictures
from plackett.data.loading import PictureBatches
from plackett.data.sight import Sight

if __name__ == "__main__":
    source = open_pictures(sys.argv[1]).train
    assert source is not None
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background inherits as ignored
    batches = PictureBatches(source, 4, 0, Sight(16), workers=2)
    try:
        for epoch in range(10_000):
            for number, _ in enumerate(batches.epoch(epoch)):
                if (epoch, number) == (0, 1):  # one from each worker, so that both have begun
                    print(*(process.pid for process in multiprocessing.active_children()), flush=True)
                time.sleep(0.01)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
