"""The page as a browser sees it: headless Chromium, light and dark, wide and narrow."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from plackett.experiments.records import METRICS, RESULTS, RUN, write_json
from plackett.experiments.transfer import COSTS
from plackett.report import write
from tests.experiments.runs import record, write_run
from tests.report.kept import keep
from tests.report.test_report import KEPT

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--enable-logging=stderr", "--v=0"),
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, and none is found on the PATH")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for group in ("few", "all"):
        for seed in range(3):
            accuracies = {"CE": 0.8 + seed / 100, "PLD τ=4": 0.85 + seed / 90, "a rather long name of a method": 0.82}
            run = write_run(folder / f"{group}{seed}", seed, accuracies, group=group)
            keep(run, list(accuracies))
    return write(folder)


def browse(page: Path, profile: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-2000:]
    return run


def test_no_console_errors_and_every_section_present(page: Path, tmp_path: Path) -> None:
    run = browse(page, tmp_path, "--dump-dom")
    assert "CONSOLE" not in run.stderr, run.stderr
    sections = re.findall(r'<section id="(\w+)"', run.stdout)
    assert sections == KEPT
    # Of a comparison: dots, differences, 3 curves, 3 losses, who is right, 3 of reliability, 3 matrices, 2 trade-offs.
    assert run.stdout.count("<svg") == 2 * (1 + 1 + 3 + 3 + 1 + 3 + 3 + 2) + 2
    assert run.stdout.count("<img") == 2 * 5


def one_run(folder: Path) -> None:
    keep(write_run(folder / "r", 0, {"CE": 0.8, "PLD": 0.9}), ["CE", "PLD"])


def no_teacher(folder: Path) -> None:
    run = write_run(folder / "r", 0, {"CE": 0.8})
    write_json(run / RUN, record(0, ["CE"]).model_copy(update={"teacher": None}))
    keep(run, ["CE"], teacher=False)


def fifty_runs(folder: Path) -> None:
    for seed in range(50):
        accuracies = {f"method {i}": 0.8 + i / 50 + seed / 999 for i in range(6)}
        keep(write_run(folder / f"{seed}", seed, accuracies), list(accuracies))


def half_finished(folder: Path) -> None:
    one_run(folder)
    later = write_run(folder / "later", 1, {"CE": 0.8, "PLD": 0.9})
    (later / RESULTS).unlink()


def broken(folder: Path) -> None:
    run = write_run(folder / "r", 0, {"CE": 0.8})
    for name in (RUN, METRICS, RESULTS):
        (run / name).write_text("{<script>alert(1)</script>")


@pytest.mark.parametrize("made", [one_run, no_teacher, fifty_runs, half_finished, broken])
def test_every_kind_of_report_opens_without_complaint_and_without_a_network(
    made: Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / "runs").mkdir()
    made(tmp_path / "runs")
    begun = time.process_time()
    page = write(tmp_path / "runs")
    assert time.process_time() - begun < 10
    assert page.stat().st_size < 5 << 20
    run = browse(page, tmp_path / "profile", f"--log-net-log={tmp_path / 'log.json'}", "--dump-dom")
    assert "CONSOLE" not in run.stderr, run.stderr
    sections = re.findall(r'<section id="(\w+)"', run.stdout)
    assert sections[0] == "verdict"
    assert ("problems" in sections) == (made in (half_finished, broken))
    asked = set(re.findall(r"https?://([\w.-]+)", (tmp_path / "log.json").read_text()))
    assert not {host for host in asked if not re.search(r"\b(google|googleapis|gstatic)\.com$", host)}


def probed(page: Path, tmp_path: Path, script: str, *flags: str) -> str:
    """What `script` returns in a copy of the page that is allowed to run it."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    probe = f"<script>document.body.dataset.probe = (() => {{ {script} }})();</script></body>"
    copy = tmp_path / "probe.html"
    copy.write_text(text.replace("</body>", probe))
    dom = browse(copy, tmp_path / "profile", "--dump-dom", *flags).stdout
    found = re.search(r'data-probe="([^"]*)"', dom)
    assert found
    return found[1]


@pytest.mark.parametrize("width", [500, 1200])
def test_the_page_is_no_wider_than_the_window(page: Path, tmp_path: Path, width: int) -> None:
    script = "return [document.documentElement.scrollWidth, innerWidth].join(' ');"
    wide, window = map(int, probed(page, tmp_path, script, f"--window-size={width},900").split())
    assert wide <= window


def test_no_table_of_a_page_like_the_demos_is_cut_on_a_desk(tmp_path: Path) -> None:
    methods = {"CE": 0.9, "KD": 0.91, "DIST": 0.92, "DKD": 0.9, "PLD τ=1": 0.9, "PLD τ=4": 0.91}
    for group in ("Few labels: 150 pictures", "All labels: 1,078 pictures"):
        for seed in range(3):
            accuracies = {name: value + seed / 97 for name, value in methods.items()}
            run = write_run(tmp_path / f"{group[:3]}{seed}", seed, accuracies, group=group)
            keep(run, list(methods))
            costs = json.loads((run / COSTS).read_text())
            (run / COSTS).write_text(json.dumps(costs | {"seconds": 18.4 + 4.7 * seed, "epochs": 100, "steps": 300}))
    script = """
      return [...document.querySelectorAll('main .scroll')]
        .filter(e => !e.closest('details') && e.scrollWidth > e.clientWidth).map(e => e.ariaLabel).join('; ') || 'none';
    """
    assert probed(write(tmp_path), tmp_path, script, "--window-size=1200,900") == "none"


@pytest.mark.parametrize(("width", "wider"), [(500, True), (1200, False)])
def test_a_table_that_goes_on_beyond_the_edge_shows_it(page: Path, tmp_path: Path, width: int, wider: bool) -> None:
    """The shadow is painted on the edge where the table goes on and nowhere else: the rightmost pixels tell."""
    matplotlib = pytest.importorskip("matplotlib.image")
    script = """
      const scroll = document.querySelector('#comparison .scroll');
      document.body.replaceChildren(scroll);
      document.body.style.cssText = 'padding: 0; margin: 0; max-width: none';
      scroll.style.margin = 0;
      return scroll.scrollWidth > scroll.clientWidth;
    """
    size = f"--window-size={width},900"
    assert probed(page, tmp_path, script, size) == str(wider).lower()
    browse(tmp_path / "probe.html", tmp_path / "profile", size, f"--screenshot={tmp_path / 'shot.png'}")
    shot = matplotlib.imread(tmp_path / "shot.png")[..., :3].mean(-1)
    left, right = shot[:150, 0], shot[:150, -1]
    assert left.mean() > 0.97  # nothing to the left of the beginning
    assert (right.mean() < 0.85) == wider


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_telephone_nothing_needs_scrolling_sideways_but_tables(page: Path, tmp_path: Path, width: int) -> None:
    """Windows are never that narrow, frames are."""
    text = page.read_text()
    frame = tmp_path / "frame.html"
    frame.write_text(f"""<!doctype html><iframe width="{width}" height="800" srcdoc="{html.escape(text)}"></iframe>
      <script>addEventListener('load', () => {{
        const page = document.querySelector('iframe').contentDocument;
        const wide = [...page.querySelectorAll('main *')].filter(e => !e.closest('.scroll, pre, svg, .unseen')
          && e.getBoundingClientRect().right > {width} + 1).map(e => e.tagName + '.' + e.className);
        document.body.dataset.probe = [page.documentElement.scrollWidth, ...new Set(wide)].join(' ');
      }});</script>""")
    dom = browse(frame, tmp_path / "profile", "--dump-dom").stdout
    found = re.search(r'<body data-probe="([^"]*)"', dom)
    assert found
    assert found[1] == str(width)


@pytest.mark.parametrize("asks", [False, True])
def test_nothing_was_asked_of_a_network(page: Path, tmp_path: Path, asks: bool) -> None:
    """The browser's own log of its network, which does see a page that asks for something."""
    text = page.read_text()
    if asks:
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
        text = text.replace("</body>", '<img src="http://plackett.invalid/x.png"></body>')
    copy = tmp_path / "copy.html"
    copy.write_text(text)
    browse(copy, tmp_path / "profile", f"--log-net-log={tmp_path / 'log.json'}", "--dump-dom")
    asked = set(re.findall(r"https?://([\w.-]+)", (tmp_path / "log.json").read_text()))
    of_the_page = {host for host in asked if not re.search(r"\b(google|googleapis|gstatic)\.com$", host)}
    assert ("plackett.invalid" in of_the_page) == asks
    assert not of_the_page - {"plackett.invalid"}


def test_a_keyboard_reaches_what_can_be_scrolled_and_opened(page: Path, tmp_path: Path) -> None:
    script = """
      const stops = [...document.querySelectorAll('a, summary, [tabindex="0"]')];
      const scrolls = [...document.querySelectorAll('main *')].filter(e =>
        ['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && !e.closest('svg'));
      const named = scrolls.every(e => e.tabIndex === 0 && e.getAttribute('role') === 'region' && e.ariaLabel);
      stops[0].focus();
      const skip = stops[0].getBoundingClientRect();
      return [stops[0].className, skip.left >= 0 && skip.top >= 0, scrolls.length > 4, named].join(' ');
    """
    assert probed(page, tmp_path, script) == "skip true true true"


@pytest.mark.parametrize(("flag", "dark"), [("--window-size=800,600", False), ("--force-dark-mode", True)])
def test_text_and_drawings_are_readable_in_light_and_dark(page: Path, tmp_path: Path, flag: str, dark: bool) -> None:
    """WCAG's contrast of at least 4.5 between the page and every colour of letters, drawings' included."""
    script = """
      const lum = (rgb) => rgb.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
      const paper = lum(getComputedStyle(document.documentElement).backgroundColor);
      const ratio = (rgb) => { const l = lum(rgb); return (Math.max(l, paper) + .05) / (Math.min(l, paper) + .05); };
      const kinds = 'p, td, th, h1, h2, h3, h4, a:not(.skip), dt, dd, li, figcaption, summary';
      const letters = [...document.querySelectorAll(kinds)]
        .map(e => ratio(getComputedStyle(e).color));
      const drawn = [...document.querySelectorAll('svg text')].map(e => ratio(getComputedStyle(e).fill))
        .filter(r => r > 1);  // letters on bars are of the paper's colour
      return [paper < 0.2, Math.min(...letters) >= 4.5, drawn.length > 50, Math.min(...drawn) >= 4.5].join(' ');
    """
    flags = (flag, "--blink-settings=preferredColorScheme=0") if dark else (flag,)
    assert probed(page, tmp_path, script, *flags) == f"{str(dark).lower()} true true true"


def test_it_prints(page: Path, tmp_path: Path) -> None:
    browse(page, tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={tmp_path / 'report.pdf'}")
    content = (tmp_path / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 14
