"""Pictures as tensors on a device, in batches that any later run can replay."""

from __future__ import annotations

from plackett.data.augment import Augment, Shift
from plackett.data.batches import Batch, Batches, Shown, Stream
from plackett.data.normalise import Normalise
from plackett.data.pictures import Pictures
from plackett.data.resident import ResidentBatches
from plackett.data.seeds import derive

__all__ = [
    "Augment",
    "Batch",
    "Batches",
    "Normalise",
    "Pictures",
    "ResidentBatches",
    "Shift",
    "Shown",
    "Stream",
    "derive",
]
