"""Pictures that lie somewhere as files do, and are decoded when they are wanted."""

from __future__ import annotations

import hashlib
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from torch import Tensor

from plackett.errors import missing_extra

if TYPE_CHECKING:
    from PIL.Image import Image

# What Pillow reads everywhere, and what people call it.
EXTENSIONS = (".jpg", ".jpeg", ".jfif", ".png", ".webp", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff")


def pillow() -> Any:
    """Pillow's `Image`, which comes with the extra `vision`."""
    try:
        from PIL import Image
    except ImportError as error:
        raise missing_extra("PIL", "vision", "Reading pictures") from error
    return Image


def decoded(file: BinaryIO | str | Path, at_least: tuple[int, int] | None = None) -> Image:
    """The picture in `file`, RGB. OSError or ValueError where it is none, whatever the decoder says.

    `at_least`: width and height that suffice; a JPEG is then decoded at 1/2, 1/4 or 1/8 where that is no smaller.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd palettes and metadata, once a picture
            with pillow().open(file) as image:
                if at_least is not None:
                    image.draft("RGB", at_least)
                if image.mode == "RGB":
                    image.load()
                    return image  # type: ignore[no-any-return]
                return image.convert("RGB")  # type: ignore[no-any-return]
    except pillow().UnidentifiedImageError as error:
        raise ValueError("not a picture of a kind that Pillow knows") from error
    except (OSError, ValueError, MemoryError, ImportError):
        raise
    except Exception as error:  # a damaged file can end in nearly any of them
        raise ValueError(f"{type(error).__name__}: {error}") from error


class Stored(ABC):
    """A source whose pictures are files of some kind: what is left to say is where each one's bytes are."""

    classes: tuple[str, ...]
    targets: Tensor

    def __len__(self) -> int:
        return len(self.targets)

    @abstractmethod
    def name(self, index: int) -> str: ...

    @abstractmethod
    def opened(self, index: int) -> BinaryIO | Path:
        """What the decoder is given."""

    @abstractmethod
    def sizes(self) -> Iterable[object]:
        """What is known of each picture's bytes without reading them: their number, or a checksum."""

    def read(self, index: int, at_least: tuple[int, int] | None = None) -> Image:
        file = self.opened(index)
        if isinstance(file, Path):
            return decoded(file, at_least)
        with file:
            return decoded(file, at_least)

    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr((len(self), self.classes)).encode())
        digest.update(self.targets.numpy().tobytes())
        for index, size in enumerate(self.sizes()):
            digest.update(f"{self.name(index)}\0{size}\n".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()


@dataclass(frozen=True)
class Files(Stored):
    """Pictures in the folder `root`, at `paths` within it."""

    root: Path
    paths: tuple[str, ...]
    targets: Tensor
    classes: tuple[str, ...]

    def name(self, index: int) -> str:
        return self.paths[index]

    def opened(self, index: int) -> Path:
        return self.root / self.paths[index]

    def sizes(self) -> list[object]:
        return [os.stat(self.root / path).st_size for path in self.paths]
