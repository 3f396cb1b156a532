"""The page as text: complete in itself, escaped, and honest about what is missing."""

from __future__ import annotations

import html.parser
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plackett.errors import InputError, MissingExtraError
from plackett.experiments.records import METRICS, RESULTS, RUN, write_json
from plackett.experiments.study import read_study
from plackett.report import need, render, write
from tests.experiments.runs import record, write_run
from tests.report.kept import keep

HOSTILE = """</text><script>alert("1")</script>$\\frac{<&'"$"""
ALWAYS = ["verdict", "comparison", "training", "teacher", "calibration", "reproduce"]
KEPT = [
    "verdict",
    "comparison",
    "training",
    "teacher",
    "transfer",
    "calibration",
    "mistakes",
    "tradeoff",
    "cost",
    "reproduce",
]


class Page(html.parser.HTMLParser):
    """Tags, attributes and ids of a page; it complains of an end without its beginning."""

    EMPTY = frozenset({"meta", "link", "br", "img", "path", "use", "rect"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attributes]

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def ids(self) -> list[str]:
        return [value for _, name, value in self.attributes if name == "id"]


def runs(folder: Path, seeds: int = 3, **methods: float) -> Path:
    methods = methods or {"CE": 0.8, "PLD": 0.85}
    for seed in range(seeds):
        accuracies = {name: value + 0.01 * seed for name, value in methods.items()}
        keep(write_run(folder / f"seed-{seed}", seed, accuracies, group="few"), list(accuracies))
    return folder


def study(folder: Path, seeds: int = 3, **methods: float) -> str:
    return render(read_study(runs(folder, seeds, **methods)))


def test_every_section_is_there_with_a_heading_and_a_link(tmp_path: Path) -> None:
    text = study(tmp_path)
    page = Page(text)
    assert [i for i in page.ids() if i in KEPT] == KEPT
    links = {value for tag, name, value in page.attributes if tag == "a" and name == "href"}
    assert links == {"#main", *(f"#{name}" for name in KEPT)}
    assert page.tags.count("h1") == 1
    assert page.tags.count("h2") == len(KEPT)
    assert ("html", "lang", "en") in page.attributes


def test_nothing_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    text = study(tmp_path)
    page = Page(text)
    assert not {"script", "iframe", "object", "embed", "base", "image"} & set(page.tags)
    for tag, name, value in page.attributes:
        if name in ("src", "href", "xlink:href", "srcset", "action"):
            assert value.startswith("#") or value.startswith("data:"), (tag, name, value)
        assert not name.startswith("on"), (tag, name)
    assert "@import" not in text
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert not re.search(r"url\((?!#)", text)


def test_every_picture_says_in_words_what_it_shows_and_ids_are_unique(tmp_path: Path) -> None:
    page = Page(study(tmp_path))
    ids = page.ids()
    assert len(ids) == len(set(ids))
    labels = [value for tag, name, value in page.attributes if tag == "svg" and name == "aria-label"]
    # dots, differences, 2 curves, 2 losses, the teacher's 2, who is right, 2 of reliability, 3 matrices, 2 trade-offs;
    # CE and PLD make the same mistakes here, so no class has changed
    assert len(labels) == page.tags.count("svg") == 16
    assert any("PLD 86.0 ± 1.0" in label for label in labels)
    used = re.findall(r'(?:xlink:href="|url\()#([^")]+)', study(tmp_path))
    assert used


def test_hostile_names_are_text_and_nothing_else(tmp_path: Path) -> None:
    for seed in range(2):
        write_run(tmp_path / str(seed), seed, {"CE": 0.8, HOSTILE: 0.9 + seed / 100}, group=HOSTILE)
        changed = record(seed, ["CE", HOSTILE], HOSTILE, classes=(HOSTILE, "b"))
        write_json(tmp_path / str(seed) / RUN, changed.model_copy(update={"device": HOSTILE, "commit": HOSTILE}))
    (tmp_path / "1" / METRICS).write_text("<script>")
    text = render(read_study(tmp_path))
    page = Page(text)
    assert "script" not in page.tags
    assert "<script" not in text
    assert "".join(page.texts).count(HOSTILE) >= 8


def test_broken_runs_are_told_of_and_the_rest_is_shown(tmp_path: Path) -> None:
    for seed in range(3):
        write_run(tmp_path / str(seed), seed, {"CE": 0.8, "PLD": 0.9})
    (tmp_path / "1" / RESULTS).unlink()
    (tmp_path / "2" / METRICS).write_text("{")
    text = render(read_study(tmp_path))
    page = Page(text)
    assert "problems" in page.ids()
    said = " ".join("".join(page.texts).split())
    assert "results.json is missing: the run was stopped before it was written" in said
    assert "metrics.jsonl is damaged from line 1 of 1 on" in said


def test_runs_without_any_result_or_teacher_still_make_a_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "r", 0, {"CE": 0.8})
    (folder / RESULTS).unlink()
    (folder / METRICS).unlink()
    write_json(folder / RUN, record(0, ["CE"]).model_copy(update={"teacher": None}))
    page = Page(render(read_study(tmp_path)))
    assert "teacher" not in page.ids()
    assert "No run of this comparison has finished, so there is nothing to say of it." in page.texts


def test_one_run_without_a_teacher(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "r", 0, {"CE": 0.8})
    write_json(folder / RUN, record(0, ["CE"]).model_copy(update={"teacher": None}))
    keep(folder, ["CE"], teacher=False)
    page = Page(render(read_study(folder)))
    # One network has nothing to trade, and one confusion matrix, not the same one as plain and as distilled student.
    shown = ["verdict", "comparison", "training", "calibration", "mistakes", "cost", "reproduce"]
    assert [i for i in page.ids() if i in KEPT] == shown
    labels = [value for tag, name, value in page.attributes if tag == "svg" and name == "aria-label"]
    assert sum("Confusion matrix" in label for label in labels) == 1
    assert not any("Pictures: some of those" in text for text in page.texts)
    assert "There is nothing to compare with CE." in page.texts


def test_one_seed_says_so(tmp_path: Path) -> None:
    text = study(tmp_path, seeds=1)
    assert "One seed cannot tell PLD from CE: a finding takes at least 3." in text
    assert "80.0 (n = 1)" in text
    assert "too few seeds to tell" in text
    assert "±" not in re.sub(r"<p class=\"note\">.*?</p>", "", text, flags=re.DOTALL)


def test_fifty_runs_take_less_than_ten_seconds_and_five_megabytes(tmp_path: Path) -> None:
    """With all that a run keeps: predictions of 1,000 pictures, what was transferred, costs, pictures."""
    methods = {f"method {i}": 0.5 + i / 100 for i in range(6)}
    for seed in range(50):
        keep(write_run(tmp_path / f"{seed:02d}", seed, methods, epochs=60), list(methods), pictures=1000, side=32)
    begun = time.process_time()
    path = write(tmp_path)
    assert time.process_time() - begun < 10
    assert path.stat().st_size < 5 << 20
    assert [i for i in Page(path.read_text()).ids() if i in KEPT] == KEPT


def test_every_plot_and_table_lies_beside_the_page(tmp_path: Path) -> None:
    path = write(runs(tmp_path))
    beside = path.with_name("report-files")
    plots = [path.stem for path in beside.glob("*.svg")]
    assert len(plots) == Page(path.read_text()).tags.count("svg")
    assert all((beside / f"{plot}.png").read_bytes().startswith(b"\x89PNG") for plot in plots)
    tables = {path.name.split("-")[0] for path in beside.glob("*.csv")}
    shown = {"verdict", "comparison", "training", "teacher", "transfer", "calibration", "mistakes", "tradeoff", "cost"}
    assert tables == {*shown, "reproduce"}


def test_the_report_says_how_the_runs_were_made_and_what_each_method_minimises(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "r", 0, {"CE": 0.8, "PLD": 0.9})
    terms = {"CE": {"terms": {"ce": 1.0}}, "PLD": {"terms": {"pld": {"weight": 1.0, "temperature": 4.0}}}}
    made = {"command": "plackett compare digits", "title": "Digits <b>", "config": {"methods": terms}}
    write_json(folder / RUN, record(0, ["CE", "PLD"]).model_copy(update=made))
    page = Page(render(read_study(tmp_path)))
    assert {"plackett compare digits", "Digits <b>", "pld (temperature 4)"} <= set(page.texts)
    assert not any("do not say by which command" in text for text in page.texts)


@pytest.mark.parametrize(("spread", "said"), [(0.008, True), (0.0001, False)])
def test_words_more_careful_than_their_interval_are_explained(tmp_path: Path, spread: float, said: bool) -> None:
    for seed in range(5):
        accuracies = dict.fromkeys(("CE", *"abcdefgh"), 0.8) | {"PLD": 0.82 + spread * (seed - 2)}
        write_run(tmp_path / str(seed), seed, accuracies)
    assert ("An interval stands for itself alone; the words allow" in render(read_study(tmp_path))) == said


def test_the_same_runs_give_the_same_page(tmp_path: Path) -> None:
    assert study(tmp_path) == study(tmp_path)


def test_the_report_does_without_torch(tmp_path: Path) -> None:
    write_run(tmp_path / "r", 0, {"CE": 0.8})
    code = (
        "import sys, pathlib, plackett.report\n"
        f"plackett.report.write(pathlib.Path({str(tmp_path)!r}))\n"
        "print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
    assert (tmp_path / "report.html").exists()


def test_a_folder_is_no_place_for_a_file(tmp_path: Path) -> None:
    write_run(tmp_path / "r", 0, {"CE": 0.8})
    with pytest.raises(InputError, match=r"is a folder: the report needs the name of a file, such as .*report\.html"):
        write(tmp_path, tmp_path)


@pytest.mark.parametrize(("error", "sentence"), [
    (ModuleNotFoundError("No module named 'b.c'", name="b.c"),
     "A needs 'b', which is not installed: pip install 'plackett[x]'."),
    (ImportError("broken", name="b"),
     "A needs 'a', which cannot be imported (broken): pip install --upgrade 'plackett[x]'."),
])  # fmt: skip
def test_what_is_missing_is_named_and_not_what_asked_for_it(
    monkeypatch: pytest.MonkeyPatch, error: ImportError, sentence: str
) -> None:
    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr("plackett.report.needs.import_module", fail)
    with pytest.raises(MissingExtraError) as found:
        need("a", "x", "A")
    assert str(found.value) == sentence


@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_without_its_extra_the_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    sentence = f"The report needs '{module}', which is not installed: pip install 'plackett\\[report\\]'"
    with pytest.raises(MissingExtraError, match=sentence):
        study(tmp_path)
