"""What a table or a report is made of: run folders, gathered by group, read without torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from plackett.errors import InputError
from plackett.experiments.records import METRICS, RESULTS, RUN, SCHEMA, Document, Run, read_document, read_run

STUDY = "experiment.json"


class CaseRecord(Document):
    """One comparison of an experiment: `group` is what its runs carry, `title` what people read."""

    group: str
    title: str


class StudyRecord(Document):
    """`experiment.json`: which runs belong together, and the method that the others are compared with."""

    schema_version: int = SCHEMA
    name: str
    title: str
    question: str
    command: str
    status: Literal["running", "finished", "interrupted"]
    baseline: str
    cases: list[CaseRecord]
    runs: list[str]
    seconds: float | None = None


class Study(Document):
    """Runs by group, and in sentences what could not be read."""

    folder: Path
    record: StudyRecord
    runs: dict[str, list[Run]]
    problems: list[str]

    @property
    def all_runs(self) -> list[Run]:
        return [run for runs in self.runs.values() for run in runs]


class _Part(NamedTuple):
    """What one of the given folders holds."""

    folder: Path
    record: StudyRecord | None
    runs: list[Run]


def read_study(*folders: Path) -> Study:
    """The experiment in a folder, or every run folder at or below it; of several folders, all of them as one."""
    study = survey(*folders)
    if not study.all_runs:
        where = ", ".join(map(str, folders))
        raise InputError(f"There is no readable run in {where}. " + " ".join(study.problems[:3]))
    return study


def survey(*folders: Path) -> Study:
    """The same, also where no run can be read: then there are problems only."""
    problems: list[str] = []
    parts = [part for folder in dict.fromkeys(folders) for part in _parts(folder, problems)]
    runs: dict[str, list[Run]] = {}
    titles: dict[str, str] = {}
    for part in parts:
        for group, title in _cases(part):
            for block in _blocks([run for run in part.runs if run.record.group == group]):
                key = next((known for known in runs if block and _belong(runs[known], block)), None)
                if key is None:
                    key = _unused(group, block[0].folder if block else part.folder, runs)
                    titles[key] = f"{title}{key[len(group) :]}"
                runs.setdefault(key, []).extend(block)
    every = [run for members in runs.values() for run in members]
    problems += [problem for run in every for problem in run.problems]
    cases = [CaseRecord(group=key, title=title) for key, title in titles.items()]
    return Study(folder=_above(folders), record=_record(parts, cases, every), runs=runs, problems=problems)


def is_plain(method: str, runs: Sequence[Run]) -> bool:
    """Whether a method is cross-entropy alone, which no teacher takes part in."""
    for run in runs:
        if (terms := terms_of(run, method)) is not None:
            return set(terms) == {"ce"}
    return method.casefold() == "ce"


def terms_of(run: Run, method: str) -> Mapping[str, Any] | None:
    """What a student was trained by, as `Objective` takes it; None where the run does not say."""
    methods = run.record.config.get("methods")
    said = methods.get(method) if isinstance(methods, Mapping) else None
    said = said.get("terms", said) if isinstance(said, Mapping) else None
    return said if isinstance(said, Mapping) else None


def baseline(runs: Sequence[Run], wanted: str = "") -> str:
    """What these runs' methods are compared with: `wanted` where they have it, else cross-entropy, else the first."""
    names = list(dict.fromkeys(name for run in runs for name in run.record.students))
    if wanted in names or not names:
        return wanted
    return next((name for name in names if is_plain(name, runs)), names[0])


def _parts(folder: Path, problems: list[str]) -> Iterator[_Part]:
    """The experiments at or below a folder, and what run folders there are besides."""
    if not folder.is_dir():
        raise InputError(f"There is no run folder {folder}.")
    places = _run_folders(folder)
    studies = [folder] if (folder / STUDY).exists() else sorted(path.parent for path in folder.rglob(STUDY))
    if not places and not studies:
        raise InputError(f"There is no {RUN} in or below {folder}: that is not a run folder.")
    for root in studies:
        try:
            record = read_document(root / STUDY, StudyRecord)
        except InputError as error:
            problems.append(str(error))
            continue
        if record.status != "finished":
            problems.append(f"{root} is not finished: its status is {record.status!r}. Run its command again to go on.")
        places = [place for place in places if root not in (place, *place.parents)]
        yield _Part(root, record, _runs([root / name for name in record.runs], problems))
    if places:
        yield _Part(folder, None, _runs(places, problems))


def _run_folders(folder: Path) -> list[Path]:
    """Folders at or below with a run's files, of which `run.json` may be what is missing."""
    found = {path.parent for name in (RUN, RESULTS) for path in folder.rglob(name)}
    return sorted(found | ({folder} if (folder / METRICS).exists() else set()))


def _runs(places: Sequence[Path], problems: list[str]) -> list[Run]:
    runs: list[Run] = []
    for path in places:
        try:
            runs.append(read_run(path))
        except InputError as error:
            problems.append(str(error))
    return runs


def _cases(part: _Part) -> list[tuple[str, str]]:
    if part.record is not None:
        return [(case.group, case.title) for case in part.record.cases]
    return [(group, group) for group in dict.fromkeys(run.record.group for run in part.runs)]


def _blocks(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs that can be told apart by seed and method are one comparison; what is there twice begins another."""
    blocks: list[list[Run]] = [[]]
    for run in runs:
        home = next((block for block in reversed(blocks) if not block or _belong(block, [run])), None)
        if home is None:
            blocks.append([run])
        else:
            home.append(run)
    return blocks


def _belong(runs: Sequence[Run], more: Sequence[Run]) -> bool:
    """More seeds or methods of the same comparison: the same group, data and teacher, and nothing twice."""
    teachers = {run.record.teacher.model_dump_json() for run in (*runs, *more) if run.record.teacher}
    keys = {(run.record.group, run.record.data.fingerprint) for run in (*runs, *more)}
    held, new = ({(run.record.seed, name) for run in part for name in run.record.students} for part in (runs, more))
    return len(teachers) <= 1 and len(keys) == 1 and not held & new


def _unused(group: str, folder: Path, taken: Mapping[str, object]) -> str:
    """The group's name, or the same with the first folder above the run that makes it another."""
    above = [path.name for path in folder.resolve().parents if path.name not in ("", group)]
    return next(name for name in (group, *(f"{group} ({name})" for name in [*above, folder])) if name not in taken)


def _above(folders: Sequence[Path]) -> Path:
    """The folder itself, or of several the one that they are all in."""
    if len(folders) == 1:
        return folders[0]
    shared = set.intersection(*(set(path.absolute().parents) | {path.absolute()} for path in folders))
    return max(shared, key=lambda path: len(path.parts))


def _record(parts: Sequence[_Part], cases: list[CaseRecord], runs: Sequence[Run]) -> StudyRecord:
    written = [part.record for part in parts if part.record is not None]
    if len(parts) == 1 and written:
        return written[0]
    titles = list(dict.fromkeys([record.title for record in written] or [_title(runs)]))
    commands = [*(record.command for record in written), *(run.record.command for run in runs)]
    seconds = [record.seconds for record in written if record.seconds is not None]
    return StudyRecord(
        name=_above([part.folder for part in parts]).resolve().name,
        title=titles[0] if len(titles) == 1 else f"{len(titles)} experiments: {'; '.join(titles[:3])}",
        question=written[0].question if len({record.question for record in written}) == 1 else "",
        command="\n".join(dict.fromkeys(command for command in commands if command)),
        status="finished",
        baseline=baseline(runs, written[0].baseline if written else ""),
        cases=cases,
        runs=[str(run.folder) for run in runs],
        seconds=sum(seconds) if len(seconds) == len(parts) else None,
    )


def _title(runs: Sequence[Run]) -> str:
    if not runs:
        return "Runs that cannot be read"
    names = list(dict.fromkeys(run.record.title or run.record.name for run in runs))
    return names[0] if len(names) == 1 else f"{', '.join(names[:3])}{' and more' if len(names) > 3 else ''}"


__all__ = [
    "RUN",
    "STUDY",
    "CaseRecord",
    "Study",
    "StudyRecord",
    "baseline",
    "is_plain",
    "read_study",
    "survey",
    "terms_of",
]
