"""Tuning under a stated budget: every objective the same number of trials, judged by pictures that are no test.

A round is one trial of every objective, as one cohort. The first is the recipe's own values, later ones are what Optuna
suggests, from a seed that depends on objective and round alone: a search that was killed goes on as if it had not been.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from plackett.data import Pictures, derive
from plackett.data.digits import stratified
from plackett.differences import differences
from plackett.errors import InputError, missing_extra
from plackett.evaluation import accuracy
from plackett.experiments import search, sweep, teachers
from plackett.experiments.pupils import pupils, taught_by
from plackett.experiments.recipes import Recipe, merged
from plackett.experiments.reproduce import COMMITTED
from plackett.experiments.search import Space
from plackett.experiments.task import Task, load
from plackett.objectives import Objective
from plackett.training import Cohort

TRIALS = "trials.db"
SHARE = 10  # a tenth of the training pictures is held out, where no others are at hand


@dataclass(frozen=True)
class Order:
    """What was asked for; `minutes` ends it after the round in which they are over."""

    recipe: Recipe
    pair: str
    spaces: Mapping[str, Space]
    trials: int
    out: Path
    minutes: float | None = None
    seeds: int = 1
    seed: int = 0
    data: Path | None = None
    device: str | None = None
    teacher: Path | None = None

    def __post_init__(self) -> None:
        for name, value in (("trials", self.trials), ("seeds", self.seeds)):
            if value < 1:
                raise InputError(f"Tuning takes at least 1 of {name}, not {value}.")
        if self.minutes is not None and not self.minutes > 0:
            raise InputError(f"The budget in minutes is a number above 0, not {self.minutes:g}.")


@dataclass(frozen=True)
class Best:
    """An objective's best trial by its validation accuracy; `own` is the accuracy with the recipe's own values."""

    method: str
    values: dict[str, Any]
    accuracy: float
    own: float | None
    trials: int


def run(
    order: Order, watch: Callable[[str, int, int], None] = lambda said, done, total: None
) -> tuple[list[Best], Task]:
    """The best of every objective after the same number of trials each, and what they were judged on."""
    optuna = _optuna()
    task = held_out(load(order.recipe, order.data, order.device), order.seed)
    order.out.mkdir(parents=True, exist_ok=True)
    storage = optuna.storages.RDBStorage(f"sqlite:///{order.out / TRIALS}")
    studies = {m: _study(optuna, storage, order, m, task) for m in order.spaces}
    _check(order, task)
    teacher = _teacher(order, task, lambda said, done: watch(said, 0, 1))
    begun, total = time.monotonic(), order.trials * len(studies)

    def complete(method: str) -> list[Any]:
        return list(studies[method].get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,)))

    for number in range(order.trials):
        missing = [method for method in studies if len(complete(method)) <= number]
        done = sum(min(len(complete(method)), order.trials) for method in studies)
        watch(f"trial {number + 1} of {order.trials}", done, total)
        if not missing:
            continue
        if order.minutes is not None and number and time.monotonic() - begun > 60 * order.minutes:
            break
        asked = {method: _ask(optuna, studies[method], order, method, number) for method in missing}
        found = _round(order, task, teacher, {method: values for method, (values, _) in asked.items()})
        for method, (values, trial) in asked.items():
            _tell(optuna, studies[method], order.spaces[method], values, trial, found[method])
    least = min(len(complete(method)) for method in studies)
    return [_best(order, method, complete(method)[:least]) for method in studies], task


def held_out(task: Task, seed: int = 0) -> Task:
    """The task with other pictures to test on: training pictures that its student does not see.

    These are the teacher's pictures that are not the student's, where there are any; else a tenth of the student's,
    with every class in its share, which it then has no more.
    """
    n = len(task.train)
    rest = task.teaching.subset(torch.arange(n, len(task.teaching)))
    if len(rest):
        if not torch.equal(task.teaching.targets[:n], task.train.targets):
            raise InputError("The student's pictures are not the first of the teacher's; no others can be held out.")
        train, judged = task.train, rest
    else:
        order = stratified(task.train.targets.cpu(), seed=derive(seed, "held out"))
        judged, train = (task.train.subset(part) for part in (order[: n // SHARE], order[n // SHARE :]))
    test = task.readable(judged)
    if task.mode.channels_last:
        test = Pictures(test.inputs.contiguous(memory_format=torch.channels_last), test.targets, test.classes)
    mark = f"{derive(train.fingerprint(), judged.fingerprint()):016x}"
    return replace(task, train=train, test=test, fingerprint=mark)


def tuned(order: Order, found: Sequence[Best]) -> dict[str, Any]:
    """A recipe with the best values, which `plackett compare` reads; its seeds are none that tuning used."""
    methods = {}
    for best in found:
        terms, rate, decay = _said(order, best.method, best.values)
        title = f"{best.method}, tuned in {best.trials} trials"
        own = {"learning_rate": rate, "weight_decay": decay}
        methods[f"{best.method}-tuned"] = {
            "title": title, "terms": terms, **{key: value for key, value in own.items() if value is not None},
        }  # fmt: skip
    held = order.recipe.model_dump(exclude_none=True, exclude={"methods", "sweep", "default_methods", "smoke"})
    names = list(methods)
    untuned = {name: order.recipe.methods[name].model_dump(exclude_none=True) for name in order.spaces}
    return {
        **held,
        "name": f"{order.recipe.name}-tuned",
        "extends": order.recipe.teachers_of,
        "title": f"{order.recipe.title}, tuned",
        "baseline": order.recipe.baseline if order.recipe.baseline in untuned else next(iter(untuned)),
        "pairs": {order.pair: held["pairs"][order.pair]},
        "default_pairs": [order.pair],
        "methods": {**methods, **untuned},
        "default_methods": [*untuned, *names],
        "smoke": {"epochs": 1, "seeds": order.recipe.seeds[:1], "pairs": [order.pair], "methods": names[:1]},
    }


def tuning_seeds(order: Order) -> list[int]:
    """Seeds that no comparison by this recipe uses."""
    first = max(order.recipe.seeds) + 1000
    return list(range(first, first + order.seeds))


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise missing_extra("optuna", "tune", "plackett tune") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _study(optuna: Any, storage: Any, order: Order, method: str, task: Task) -> Any:
    study = optuna.create_study(study_name=method, storage=storage, direction="maximize", load_if_exists=True)
    config = {
        "space": {option: str(within) for option, within in order.spaces[method].items()},
        "training": order.recipe.training_of(method).model_dump(),
        "terms": order.recipe.terms(method, order.pair, _taps(order, task)),
        "pair": order.pair,
        "seeds": tuning_seeds(order),
        "seed": order.seed,
        "data": task.fingerprint,
    }
    config = json.loads(json.dumps(config))
    if (held := study.user_attrs.get("config")) is None:
        study.set_user_attr("config", config)
    elif changes := list(differences(held, config)):
        raise InputError(
            f"{order.out / TRIALS} was made by another configuration: {'; '.join(changes)}. "
            "Go on with the old one, or take another --out."
        )
    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)  # of a search that was killed
    return study


def _ask(optuna: Any, study: Any, order: Order, method: str, number: int) -> tuple[dict[str, Any], Any]:
    space = order.spaces[method]
    if number == 0 and (own := search.own_values(order.recipe, method, space)) is not None:
        return own, None
    study.sampler = optuna.samplers.TPESampler(seed=derive(order.seed, method, number) % 2**32, n_startup_trials=5)
    trial = study.ask(_distributions(optuna, space))
    return dict(trial.params), trial


def _distributions(optuna: Any, space: Space) -> dict[str, Any]:
    kinds = optuna.distributions
    return {
        option: kinds.CategoricalDistribution(within.values)
        if within.values
        else kinds.FloatDistribution(within.low, within.high, log=within.log)
        for option, within in space.items()
    }


def _tell(optuna: Any, study: Any, space: Space, values: dict[str, Any], trial: Any, value: float) -> None:
    if trial is not None:
        study.tell(trial, value)
        return
    study.add_trial(
        optuna.trial.create_trial(
            params=values, distributions=_distributions(optuna, space), value=value, user_attrs={"own": True}
        )
    )


def _round(
    order: Order, task: Task, teacher: teachers.Loaded | None, asked: Mapping[str, dict[str, Any]]
) -> dict[str, float]:
    """The validation accuracy of each after the last epoch, a mean over the tuning seeds; 0 of what stopped."""
    recipe, sums = order.recipe, dict.fromkeys(asked, 0.0)
    for seed in tuning_seeds(order):
        stream = task.stream(recipe.training, seed)
        given = {}
        for method, values in asked.items():
            terms, rate, decay = _said(order, method, values, _taps(order, task))
            own = {"learning_rate": rate, "weight_decay": decay}
            training = recipe.training.model_copy(update={k: v for k, v in own.items() if v is not None})
            given[method] = (terms, training)
        students = pupils(task, recipe.pairs[order.pair].student, given, seed, len(stream))
        live = None if teacher is None else taught_by(teacher.network, task, students)
        cohort = Cohort(students, stream, live, mode=task.mode)
        cohort.fit(recipe.training.epochs)
        said = task.predictions({student.name: student.kept for student in cohort.going()})
        for name, logits in said.items():
            sums[name] += accuracy(logits, task.targets) / order.seeds
    return sums


def _check(order: Order, task: Task) -> None:
    """An option or a value that its objective does not take is said before anything is trained."""
    for method, space in order.spaces.items():
        for option, within in space.items():
            for value in within.values or (within.low, within.high):
                Objective(_said(order, method, {option: value}, _taps(order, task))[0])


def _said(
    order: Order, method: str, values: Mapping[str, Any], taps: Sequence[str] = ()
) -> tuple[dict[str, Any], float | None, float | None]:
    """The terms with these values, and the rate and decay of the method's own."""
    recipe, base = order.recipe, order.recipe.methods[method]
    of_term = {key: value for key, value in values.items() if key not in sweep.OF_METHOD}
    terms = recipe.terms(method, order.pair, taps)
    if of_term:
        terms = merged(terms, sweep.changed_terms(method, terms, of_term))
    rate, decay = (values.get(key, getattr(base, key)) for key in sweep.OF_METHOD)
    return terms, rate, decay


def _taps(order: Order, task: Task) -> tuple[str, ...]:
    return tuple(getattr(task.network(order.recipe.pairs[order.pair].student), "taps", ()))


def _teacher(order: Order, task: Task, watch: Callable[[str, int], None]) -> teachers.Loaded | None:
    recipe = order.recipe
    if not any(Objective(recipe.terms(m, order.pair, _taps(order, task))).reads_teacher for m in order.spaces):
        return None
    name = recipe.pairs[order.pair].teacher
    committed = COMMITTED / recipe.teachers_of / "teachers" / f"{name}.safetensors"
    for path in (order.teacher, committed):
        if path is not None and path.is_file():
            return teachers.load(path, name, task)
    own = order.out / "teachers" / f"{name}.safetensors"
    if recipe.data != "digits" and not own.exists():
        raise InputError(
            f"There is no teacher for {order.pair}: neither {own} nor {committed} exists. Name a file with --teacher, "
            f"such as one of: plackett train {name} --recipe {recipe.teachers_of}."
        )
    teachers.train(name, task, recipe.for_teacher, 0, own, lambda said, done: watch(f"teacher {name}, {said}", done),
                   every=recipe.evaluate_every, saves=recipe.checkpoint_every)  # fmt: skip
    return teachers.load(own, name, task)


def _best(order: Order, method: str, trials: Sequence[Any]) -> Best:
    best = max(trials, key=lambda trial: (trial.value, -trial.number))
    own = next((trial.value for trial in trials if trial.user_attrs.get("own")), None)
    return Best(method, dict(best.params), float(best.value), own, len(trials))
