"""Looking at losses: surfaces over a plane of logits or of weights, and whether they are convex there."""

from __future__ import annotations

from plackett.analysis.convexity import Convexity, Surface, survey
from plackett.analysis.given import Given, given
from plackett.analysis.logits import LogitSlice
from plackett.analysis.weights import WeightSlice

__all__ = ["Convexity", "Given", "LogitSlice", "Surface", "WeightSlice", "given", "survey"]
