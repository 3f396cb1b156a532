"""A few pixels as a data URI: small pictures stay as they are, large ones are made smaller."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from plackett.experiments.predictions import Array

LARGEST = 96  # pixels a side


def data_uri(pixels: Array) -> str:
    """`[H, W, channels]` bytes as PNG.

    >>> data_uri(np.zeros((1, 1, 1), np.uint8))[:30]
    'data:image/png;base64,iVBORw0K'
    """
    return f"data:image/png;base64,{base64.b64encode(png(smaller(pixels))).decode()}"


def smaller(pixels: Array) -> Array:
    """Means of k x k pixels, with the least k that makes the picture small enough.

    >>> smaller(np.zeros((224, 200, 3), np.uint8)).shape
    (74, 66, 3)
    """
    k = -(-max(pixels.shape[:2]) // LARGEST)
    height, width = pixels.shape[0] // k, pixels.shape[1] // k
    blocks = pixels[: height * k, : width * k].reshape(height, k, width, k, -1)
    found: Array = blocks.mean((1, 3)).round().astype(np.uint8)
    return found


def png(pixels: Array) -> bytes:
    """Grey for one channel, else the first three as red, green and blue."""
    coloured = pixels.shape[2] >= 3
    held = np.ascontiguousarray(pixels[..., :3] if coloured else pixels[..., :1])
    height, width = held.shape[:2]
    lines = b"".join(b"\0" + line.tobytes() for line in held)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if coloured else 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )
