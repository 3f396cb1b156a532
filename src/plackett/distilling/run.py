"""A distillation carried out: the teacher's check, a cohort for every seed, and what they leave.

recipe.yaml       every key, as it was understood: `plackett distill --recipe` of it does the same
check.json        what the pre-flight found of the teacher
experiment.json   which runs belong together
seed-N/           a run folder: checkpoints, metrics, results, predictions, costs, and `students/NAME/`
student/          the first objective's student of the first seed, as `evaluate` and `export` take it
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from plackett import devices, yamls
from plackett.distilling import cohorts
from plackett.distilling.gathered import gather, parameters
from plackett.distilling.work import Order, Telling, Work
from plackett.experiments import weights
from plackett.experiments.findings import Findings
from plackett.experiments.records import read_run, write_json, write_text
from plackett.experiments.study import STUDY, CaseRecord, StudyRecord
from plackett.models import packed
from plackett.models.packed import Packed

ASKED, STUDENT, NETWORK = "recipe.yaml", "student", "network"
SMOKE = 256  # pictures of each part


def distil(order: Order, telling: Telling, show: Callable[[Findings], None]) -> Path | None:
    """Checks, trains what is not finished, and returns the folder of the student that is handed on.

    `show` is given what the check finds before anything is trained. None where that student stopped on its way.
    """
    begun = time.perf_counter()
    asked = order.asked.small() if order.smoke else order.asked
    cohorts.check(asked)
    found = gather(asked, trust=order.trust, limit=SMOKE if order.smoke else None)
    work = Work(order, asked, found, devices.chosen(order.device), telling)
    for note in found.notes:
        telling.say(f"Note: {note}")
    findings = work.findings
    if findings is not None:
        show(findings)
        findings.require(allow_weak=order.allow_weak)
    methods = found.terms(None if findings is None else findings.temperature)
    record = _study(work, list(methods))
    write_json(order.out / STUDY, record)
    write_text(order.out / ASKED, yamls.dump(asked.model_dump(mode="json")))
    try:
        for seed in asked.seeds:
            cohorts.train(work, seed, methods)
    except BaseException:
        with suppress(OSError):
            write_json(order.out / STUDY, record.model_copy(update={"status": "interrupted"}))
        raise
    finally:
        work.close()
    kept = _handed_on(work, next(iter(methods)))
    seconds = round(time.perf_counter() - begun, 1)
    write_json(order.out / STUDY, record.model_copy(update={"status": "finished", "seconds": seconds}))
    return kept


def _handed_on(work: Work, method: str) -> Path | None:
    """Chosen by what was asked, not by what came out."""
    seed = work.asked.seeds[0]
    results = read_run(work.folder(seed)).results
    if results is None or method not in results.students:
        return None
    source = weights.read(work.folder(seed), method, trust=True)  # it has just been written here
    about = {
        "objective": method, "seed": seed, "teacher": work.asked.teacher,
        "accuracy": results.students[method].accuracy,
        "pictures": f"{len(work.found.tested):,} {'to validate' if work.found.test is None else 'to test'} with",
    }  # fmt: skip
    held = Packed(source.network, source.spec, source.classes, source.sight, about, source.options)
    return packed.save(work.order.out / (STUDENT if work.asked.teacher else NETWORK), held)


def _study(work: Work, methods: list[str]) -> StudyRecord:
    asked, found, name = work.asked, work.found, cohorts.title(work.asked)
    return StudyRecord(
        name=work.order.out.resolve().name,
        title=f"{asked.teacher} to {asked.student}, on {asked.data}" if asked.teacher else name,
        question=(
            f"How good is {asked.student} ({parameters(found.student):,} parameters) that learned from {_whom(work)} "
            f"on {len(found.train):,} pictures of {len(found.classes)} classes?"
        ),
        command=work.order.command,
        status="running",
        baseline="CE" if "CE" in methods else methods[0],
        cases=[CaseRecord(group=asked.student, title=name)],
        runs=[f"seed-{seed}" for seed in asked.seeds],
    )


def _whom(work: Work) -> str:
    teacher = work.found.teacher
    return "labels alone" if teacher is None else f"{work.asked.teacher} ({parameters(teacher):,})"
