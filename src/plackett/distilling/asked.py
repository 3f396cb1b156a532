"""What is to be distilled and how, as a command line, a recipe or both say it; read without torch.

A recipe is YAML with the keys of `Asked`; on the command line the same are written `training.epochs=50`, or `epochs=50`
where only one part has such a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from plackett import yamls
from plackett.errors import InputError, did_you_mean
from plackett.experiments.recipes import Strict, shipped

SHIPPED = ("pictures", "small-pictures")
FOLDER = "distill"
DEFAULT_OBJECTIVE = "pld"


class Learning(Strict):
    """How students learn. `None` is: a twentieth of the epochs as warm-up, and whatever the device is best at."""

    epochs: int = Field(default=30, ge=1)
    batch_size: int = Field(default=64, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(default=0.05, ge=0, allow_inf_nan=False)
    optimiser: str = "adamw"
    optimiser_options: dict[str, Any] = Field(default_factory=dict)
    warmup_epochs: float | None = Field(default=None, ge=0)
    decay_norms: bool = False
    parts: int = Field(default=1, ge=1)  # of a batch, whose gradients are added up
    clip: float | None = Field(default=None, gt=0)
    average: float | None = Field(default=None, gt=0, lt=1)  # decay of a running mean of the weights
    precision: Literal["float32", "bfloat16"] | None = None
    channels_last: bool | None = None
    compile: bool = False


class Augment(Strict):
    """What is random in a training picture; see `plackett.data.loading.Augmentation`."""

    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: float = 0.5
    jitter: float = 0.0
    rand_augment: int | None = None
    erase: float = 0.0


class Mixing(Strict):
    """Alphas of mixup and CutMix, 0 for neither; see `plackett.data.loading.Mix`."""

    mixup: float = 0.0
    cutmix: float = 0.0
    probability: float = 1.0
    switch: float = 0.5


class Asked(Strict):
    """One distillation.

    `objective` names methods (the first is the student that is kept, the others are trained beside it), or maps the
    terms of one objective. `changes` are options of a named method: of its own term, or `ce_weight`.
    """

    teacher: str = ""
    teacher_weights: str | None = None
    teacher_classes: str | None = None
    teacher_options: dict[str, Any] = Field(default_factory=dict)
    teacher_sight: dict[str, Any] = Field(default_factory=dict)
    student: str = ""
    student_weights: str | None = None
    student_options: dict[str, Any] = Field(default_factory=dict)
    student_sight: dict[str, Any] = Field(default_factory=dict)
    data: str = ""
    splits: dict[str, str] = Field(default_factory=dict)
    unlabelled: str | None = None
    objective: list[str] | dict[str, Any] = Field(default_factory=lambda: [DEFAULT_OBJECTIVE])
    changes: dict[str, dict[str, Any]] = Field(default_factory=dict)
    student_taps: dict[str, str] = Field(default_factory=dict)
    teacher_taps: dict[str, str] = Field(default_factory=dict)
    seeds: list[int] = Field(default=[0], min_length=1)
    training: Learning = Learning()
    augment: Augment = Augment()
    mix: Mixing = Mixing()
    evaluate_every: int = Field(default=1, ge=1)
    check_pictures: int = Field(default=2000, ge=1)
    bad_limit: int | None = Field(default=None, ge=0)

    @field_validator("objective", mode="before")
    @classmethod
    def _names(cls, given: Any) -> Any:
        if isinstance(given, str):
            given = [name for name in given.split(",") if name.strip()]
        return [str(name).strip().casefold() for name in given] if isinstance(given, list) else given

    @field_validator("seeds")
    @classmethod
    def _seeds(cls, given: list[int]) -> list[int]:
        if min(given) < 0:
            raise ValueError("seeds are whole numbers from 0 on")
        return list(dict.fromkeys(given))

    def whole(self) -> Asked:
        """The same, if it says all that must be said."""
        for key, what in (
            ("teacher", "a teacher: --teacher timm:NAME (or a saved network's folder, or package.module:function)"),
            ("student", "a student: --student timm:NAME"),
            ("data", "pictures: --data FOLDER, a folder a class"),
            ("objective", "an objective: --objective pld"),
        ):
            if not getattr(self, key):
                raise InputError(f"plackett distill needs {what}.")
        return self

    def small(self) -> Asked:
        """The size that shows within minutes whether everything works."""
        training = self.training.model_copy(update={"epochs": min(2, self.training.epochs), "warmup_epochs": 0.0})
        return self.model_copy(update={"training": training, "check_pictures": min(200, self.check_pictures)})


def read(recipe: str | None, given: Mapping[str, Any], pairs: Sequence[str] = ()) -> Asked:
    """A recipe, then options by name, then `key=value`; what is said last holds."""
    said = {} if recipe is None else _gathered(_held(recipe))
    where = "The command" if recipe is None else f"The recipe {recipe}"
    said = {**said, **{key: value for key, value in given.items() if value is not None}}
    for pair in pairs:
        _put(said, pair)
    try:
        return Asked.model_validate(said)
    except ValidationError as error:
        found = error.errors()[0]
        at = ".".join(str(part) for part in found["loc"] if part not in ("list[str]", "dict[str,any]"))
        message = found["msg"].removeprefix("Value error, ")
        raise InputError(f"{where}{f', {at}' if at else ''}: {message[:1].lower()}{message[1:]}.") from error


def text(which: str) -> str:
    """A recipe of the package, as its file has it."""
    return shipped(f"{FOLDER}/{which}.yaml")


def _held(recipe: str) -> dict[str, Any]:
    path = Path(recipe)
    if recipe in SHIPPED:
        content = text(recipe)
    elif path.suffix not in (".yaml", ".yml"):
        raise InputError(f"There is no recipe {recipe!r}; {did_you_mean(recipe, SHIPPED)}. A file ends in .yaml.")
    else:
        try:
            content = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"The recipe {path} cannot be read: {getattr(error, 'strerror', None) or error}."
            ) from error
    try:
        held = yamls.load(content)
    except yamls.YAMLError as error:
        raise InputError(f"The recipe {recipe} is not YAML: {' '.join(str(error).split())}.") from error
    if held is not None and not isinstance(held, dict):
        raise InputError(f"The recipe {recipe} is not a mapping of keys; see plackett recipes show pictures.")
    return held or {}


def _gathered(held: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with short keys (`epochs: 50`) put where they belong, as on the command line."""
    said = {key: value for key, value in held.items() if _part_of(key) is None}
    for key, meant in held.items():
        if (part := _part_of(key)) is not None:
            within = said.get(part) or {}
            if not isinstance(within, Mapping) or key in within:
                raise InputError(f"The recipe says {key} twice: once alone, once in {part}. Leave one of them out.")
            said[part] = {**within, key: meant}
    return said


def _put(said: dict[str, Any], pair: str) -> None:
    """Enters `key=value` where it belongs."""
    key, equals, written = pair.partition("=")
    key = key.strip()
    if not equals or not key:
        raise InputError(
            f"{pair!r} is not understood: write key=value, such as epochs=50 or objective.pld.temperature=2."
        )
    try:
        meant = yamls.load(written)
    except yamls.YAMLError:
        raise InputError(f"{pair!r}: {written!r} cannot be read; put quotes around a text.") from None
    head, *rest = _placed(key).split(".")
    if head == "objective" and rest:
        _change(said, key, rest, meant)
        return
    place = said
    for part in (head, *rest)[:-1]:
        inner = place.get(part)
        place[part] = dict(inner) if isinstance(inner, Mapping) else {}
        place = place[part]
    place[(head, *rest)[-1]] = meant


def _change(said: dict[str, Any], key: str, rest: list[str], meant: Any) -> None:
    """`objective.NAME.OPTION`: of a term, where terms are given, else of the method that is named so."""
    if len(rest) != 2:
        raise InputError(f"{key!r} is not understood: write objective.NAME.OPTION, such as objective.pld.temperature.")
    name, option = rest
    objective = said.get("objective", DEFAULT_OBJECTIVE)
    if isinstance(objective, Mapping):
        if name not in objective:
            raise InputError(f"The objective has no term {name!r}; {did_you_mean(name, objective)}.")
        term = objective[name]
        term = dict(term) if isinstance(term, Mapping) else {"weight": term}
        said["objective"] = {**objective, name: {**term, option: meant}}
        return
    names = Asked.model_validate({"objective": objective}).objective
    if name not in names:
        raise InputError(f"No objective {name!r} is trained; {did_you_mean(name, names)}. Name it with --objective.")
    changes = said.get("changes") or {}
    said["changes"] = {**changes, name: {**(changes.get(name) or {}), option: meant}}


_PARTS: dict[str, type[Strict]] = {"training": Learning, "augment": Augment, "mix": Mixing}


def _part_of(key: str) -> str | None:
    """The one part that has such a key, where it is not a key of the whole."""
    places = [part for part, model in _PARTS.items() if key in model.model_fields]
    return places[0] if len(places) == 1 and key not in Asked.model_fields else None


def _placed(key: str) -> str:
    """The full key of a short one."""
    head, dot, rest = key.partition(".")
    if head in _PARTS and dot:
        _known(rest, _PARTS[head].model_fields, f"{head} has no key")
    if head in Asked.model_fields:
        return key
    if (part := _part_of(head)) is not None:
        return f"{part}.{key}"
    leaves = [leaf for model in _PARTS.values() for leaf in model.model_fields]
    raise InputError(f"There is no key {head!r}; {did_you_mean(head, dict.fromkeys([*Asked.model_fields, *leaves]))}.")


def _known(word: str, choices: Iterable[str], what: str) -> None:
    every = list(choices)
    if word not in every:
        raise InputError(f"{what} {word!r}; {did_you_mean(word, every)}.")
