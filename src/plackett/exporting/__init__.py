"""Networks as files that others run, each checked against the network itself before it gets its name."""

from __future__ import annotations

from plackett.exporting.compared import Checking, Compared, ExportError
from plackett.exporting.with_hub import to_hub
from plackett.exporting.with_onnx import to_onnx
from plackett.exporting.with_torch import to_torch

__all__ = ["Checking", "Compared", "ExportError", "to_hub", "to_onnx", "to_torch"]
