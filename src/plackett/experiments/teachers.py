"""A teacher as a file: weights rounded to half precision, and beside them what they are.

Convolutions and the last layer are rounded. Norms stay in float32: half precision would lose a small variance.
Everything that is reported of the teacher is of the rounded weights.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from plackett import models
from plackett.differences import differences
from plackett.errors import InputError, PlackettError
from plackett.evaluation import accuracy, predict_all
from plackett.experiments import surroundings
from plackett.experiments.cohorts import Watch, fit
from plackett.experiments.compare import calibration_record
from plackett.experiments.limit import Limit
from plackett.experiments.recipes import Training
from plackett.experiments.records import Document, TeacherRecord, read_document, write_json
from plackett.experiments.task import Task, optimisation
from plackett.files import replacing
from plackett.objectives import Objective
from plackett.teachers import first_choice_weight
from plackett.training import Cohort, Student

TEMPERATURES = (1.0, 2.0, 4.0)


class TeacherFile(Document):
    """What stands beside the weights. `exact_accuracy` is that before rounding."""

    network: str
    classes: int
    sha256: str
    accuracy: float
    exact_accuracy: float
    config: dict[str, Any]
    seconds: float
    device: str
    mode: str
    versions: dict[str, str]
    commit: str | None
    finished: str


@dataclass(frozen=True)
class Loaded:
    """A teacher as its file has it."""

    name: str
    network: nn.Module
    sha256: str
    accuracy: float
    test_logits: Tensor

    def record(self, task: Task) -> TeacherRecord:
        logits = []
        for part in torch.split(torch.arange(len(task.train), device=task.device), 5000):
            pictures = task.readable(task.train.subset(part))
            logits.append(predict_all({self.name: self.network}, pictures, bfloat16=task.mode.bfloat16)[self.name])
        return TeacherRecord(
            model=self.name,
            parameters=models.parameters(self.network),
            accuracy=self.accuracy,
            calibration=calibration_record(self.test_logits, task.test.targets),
            first_choice_weight=first_choice_weight(torch.cat(logits), task.train.targets, TEMPERATURES),
        )


def train(
    name: str,
    task: Task,
    training: Training,
    seed: int,
    path: Path,
    watch: Watch,
    *,
    every: int = 10,
    saves: int = 10,
    tensorboard: bool = False,
    limit: Limit | None = None,
) -> Path:
    """Trains a network on labels alone and leaves it in `path`, with `.json` beside it; kept if it is there already."""
    config = {"network": name, "training": training.model_dump(), "seed": seed, "data": task.fingerprint}
    beside = path.with_suffix(".json")
    if path.exists() and beside.exists():
        if changes := list(differences(read_document(beside, TeacherFile).config, config)):
            raise InputError(
                f"{path} was made by another configuration: {'; '.join(changes)}. Take another --out, or delete it."
            )
        return path
    limit = limit or Limit()
    limit.begin()
    stream = task.stream(training, seed, teacher=True)
    student = Student.make(
        name,
        lambda: task.network(name),
        Objective({"ce": 1.0}),
        optimisation(training),
        steps_per_epoch=len(stream),
        seed=seed,
        device=task.device,
    )
    cohort = Cohort([student], stream, mode=task.mode)
    found = fit(
        cohort, task, path.parent / f"training-{path.stem}", config, training.epochs, every, saves, watch,
        tensorboard=tensorboard, limit=limit,
    )  # fmt: skip
    if student.stopped is not None:
        raise PlackettError(student.stopped)
    path.parent.mkdir(parents=True, exist_ok=True)
    exact = accuracy(found.logits[name], task.test.targets)
    with replacing(path) as temporary:
        temporary.write_bytes(packed(rounded(student.model), {"network": name, "classes": str(task.classes)}))
    loaded = _read(path, name, task)
    write_json(
        beside,
        TeacherFile(
            network=name,
            classes=task.classes,
            sha256=loaded.sha256,
            accuracy=loaded.accuracy,
            exact_accuracy=exact,
            config=config,
            seconds=round(found.seconds, 1),
            device=task.where,
            mode=str(task.mode),
            versions=surroundings.versions(),
            commit=surroundings.commit(),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
        ),
    )
    return path


def packed(tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> bytes:
    """A safetensors file, the same bytes for the same content: cells know their teacher by its SHA-256.

    safetensors writes what `about` says in an order that is another one in every process.
    """
    made = save(dict(tensors), dict(about))
    length = int.from_bytes(made[:8], "little")
    head = json.loads(made[8 : 8 + length])
    head["__metadata__"] = dict(sorted(about.items()))
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode().ljust(length)
    return made[:8] + text + made[8 + length :]


def rounded(network: nn.Module) -> dict[str, Tensor]:
    """The weights as they are saved; what is too large for half precision is an error, not an infinity."""
    held = {}
    for name, tensor in network.state_dict().items():
        tensor = tensor.detach().cpu().contiguous()
        held[name] = tensor.half() if tensor.is_floating_point() and tensor.dim() > 1 else tensor
        if not torch.isfinite(held[name]).all():
            raise PlackettError(f"The weight {name} is not finite in half precision; this network cannot be a teacher.")
    return held


def load(path: Path, name: str, task: Task) -> Loaded:
    """The teacher in `path`, held to the hash beside it where there is one."""
    found = _read(path, name, task)
    beside = path.with_suffix(".json")
    if beside.exists():
        said = read_document(beside, TeacherFile)
        if said.sha256 != found.sha256:
            raise InputError(
                f"{path} has SHA-256 {found.sha256[:12]}..., but {beside} says {said.sha256[:12]}...: one of the two "
                "was replaced or damaged. Get both again, or train the teacher anew with --train-teacher."
            )
    return found


def _read(path: Path, name: str, task: Task) -> Loaded:
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        held = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"The teacher {path} cannot be read ({error}).") from error
    network = task.network(name)
    _check(path, name, held, network.state_dict())
    network.load_state_dict({key: tensor.float() if tensor.is_floating_point() else tensor
                             for key, tensor in held.items()})  # fmt: skip
    network = network.to(task.device).eval().requires_grad_(False)
    logits = predict_all({name: network}, task.test, bfloat16=task.mode.bfloat16)[name]
    return Loaded(name, network, digest, accuracy(logits, task.test.targets), logits)


def _check(path: Path, name: str, held: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    missing, unknown = [k for k in wanted if k not in held], [k for k in held if k not in wanted]
    if missing or unknown:
        raise InputError(
            f"{path} does not hold a {name}: {len(missing)} of its {len(wanted)} tensors are missing"
            f"{f' (first {missing[0]})' if missing else ''}, {len(unknown)} others are there"
            f"{f' (first {unknown[0]})' if unknown else ''}."
        )
    other = [k for k in wanted if held[k].shape != wanted[k].shape]
    if not other:
        return
    key = other[0]
    theirs, ours = list(held[key].shape), list(wanted[key].shape)
    last = list(wanted)[-2:]
    if set(other) <= set(last):
        raise InputError(f"{path} is a {name} of {theirs[0]} classes, but the data has {ours[0]} ({key}).")
    raise InputError(
        f"{path} does not hold a {name}: {len(other)} of its {len(wanted)} tensors have another shape, first "
        f"{key}: {theirs}, not {ours}."
    )
