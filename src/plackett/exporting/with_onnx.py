"""A network as an ONNX file: any number of pictures at a time, checked, and with all that its user must know in it."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from plackett.errors import InputError, missing_extra
from plackett.evaluation.memory import weight_bytes
from plackett.exporting.compared import Checking, Compared, ExportError, compare, noise
from plackett.exporting.served import Layout, Served, as_taken, facts, first_line, graph
from plackett.files import replacing
from plackett.models.packed import Packed

INPUT, OUTPUT = "pictures", "logits"
LARGEST = 2_000_000_000  # bytes of a protobuf message
OLDEST, NEWEST = 18, 23  # opsets that torch's exporter writes


def to_onnx(
    packed: Packed,
    path: Path,
    *,
    checking: Checking | None = None,
    opset: int | None = None,
    bytes_in: Layout | None = None,
    half: bool = False,
) -> Compared:
    """Writes `path` if onnxruntime, given it, answers as the network does.

    Args:
        packed: the network and how it sees.
        path: the file.
        checking: pictures to check it with; else noise.
        opset: of ONNX; torch's own choice where None.
        bytes_in: takes uint8 pictures in this layout and normalises them inside.
        half: weights and computation in float16; pictures and logits stay float32.
    """
    onnx, runtime = _modules()
    if opset is not None and not OLDEST <= opset <= NEWEST:
        raise InputError(f"There is no --opset {opset} to export to; torch writes {OLDEST} to {NEWEST}.")
    served = Served(packed.network, packed.sight, bytes_in, half)
    if (size := weight_bytes(served)) > LARGEST:
        raise ExportError(
            f"The weights of {packed.spec} are {size / 2**30:.1f} GiB and an ONNX file holds less than 2 GiB: "
            "use --fp16, or --to torch."
        )
    checking, taken = as_taken(checking or noise(packed.sight), packed.sight, bytes_in)
    model = _convert(graph(served, taken(checking.inputs[:1]), packed.spec), opset, packed.spec)
    reference = Served(packed.network, packed.sight)
    with replacing(path) as temporary:
        onnx.save(model, str(temporary))
        session = _session(runtime, temporary)

        def run(inputs: Tensor) -> Tensor:
            return torch.from_numpy(session.run([OUTPUT], {INPUT: taken(inputs).numpy()})[0])

        compared = compare(reference, run, checking, path, half)
        _write_facts(model, facts(packed, bytes_in, half, compared))
        onnx.checker.check_model(model)
        onnx.save(model, str(temporary))
        _session(runtime, temporary)
    return compared


def _modules() -> tuple[Any, Any]:
    for module in ("onnx", "onnxscript", "onnxruntime"):
        try:
            __import__(module)
        except ImportError as error:
            raise missing_extra(module, "export", "An ONNX file") from error
    import onnx
    import onnxruntime

    return onnx, onnxruntime


def _convert(program: torch.export.ExportedProgram, opset: int | None, spec: str) -> Any:
    try:
        with _quiet():
            made = torch.onnx.export(
                program, dynamo=True, input_names=[INPUT], output_names=[OUTPUT], opset_version=opset, verbose=False
            )
        model = made.model_proto  # type: ignore[union-attr]
    except Exception as error:  # the exporter's own, of many kinds
        raise ExportError(
            f"{spec} cannot be written as ONNX ({first_line(error)}): --to torch and --to hub do not need it."
        ) from error
    written = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    if opset is not None and written != opset:
        raise ExportError(
            f"{spec} cannot be written in opset {opset}: torch could only write {written}. Leave out --opset."
        )
    for value in (*model.graph.input, *model.graph.output):  # the tracer's own name for it is s77 or the like
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    return model


def _session(runtime: Any, path: Path) -> Any:
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _write_facts(model: Any, what: Mapping[str, Any]) -> None:
    """Strings by name; lists and numbers as JSON."""
    del model.metadata_props[:]
    for key, value in what.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        model.metadata_props.add(key=key, value=text)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's notes to its own developers."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    before = [logger.level for logger in loggers]
    with warnings.catch_warnings(action="ignore"):
        try:
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)
