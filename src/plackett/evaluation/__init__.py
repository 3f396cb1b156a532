"""How good a classifier is: tensors in, plain numbers out; teacher and student alike."""

from __future__ import annotations

from plackett.evaluation.accuracy import accuracy, agreement
from plackett.evaluation.calibration import Calibration, calibration
from plackett.evaluation.predict import predict, predict_all, predict_batches

__all__ = ["Calibration", "accuracy", "agreement", "calibration", "predict", "predict_all", "predict_batches"]
