"""Where pictures come from when they do not all fit in memory: each is read when it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from PIL.Image import Image

NO_LABEL = -100


class Source(Protocol):
    """Pictures by number: from a folder, a zip file, a Hugging Face data set, shards.

    `targets` is `[N]` int64, `NO_LABEL` where none is known. `read` may fail on a picture (OSError or ValueError); its
    `name` is what people are then told. A source can be sent to another process.
    """

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def targets(self) -> Tensor: ...

    def __len__(self) -> int: ...

    def name(self, index: int) -> str: ...

    def read(self, index: int) -> Image:
        """The picture, RGB."""
        ...

    def fingerprint(self) -> str:
        """The same for the same pictures, labels and classes; without decoding a picture."""
        ...
