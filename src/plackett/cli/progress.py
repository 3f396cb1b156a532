"""How long work shows itself: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from plackett.cli.letters import spell


class Bar:
    """`tell(what, done, total)` moves it on.

    Where nobody watches, a line is written whenever `what` changes, with the time that is left.
    """

    def __init__(self, console: Console) -> None:
        self.console, self._begun, self._what = console, time.monotonic(), ""
        self._bar: Progress | None = None
        if console.is_terminal:
            columns = TextColumn("{task.description:<26}"), BarColumn(30), TextColumn("{task.percentage:3.0f} %")
            self._bar = Progress(*columns, TimeRemainingColumn(compact=True), console=console, transient=True)
            self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Bar:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, what: str, done: int, total: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, description=what, completed=done, total=total)
        elif what != self._what:
            self._what = what
            spent = time.monotonic() - self._begun
            far = f": {100 * done / total:.0f} % done, about {spent / done * (total - done):.0f} s left" if done else ""
            self.console.print(f"  {what}{far}", highlight=False)


def say(console: Console, *parts: RenderableType) -> None:
    """Prints, in letters that the console has, without the blanks that pad every line to the console's width."""
    with console.capture() as captured:
        for part in parts:
            console.print(spell(part, console.encoding) if isinstance(part, str) else part, markup=False)
    console.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))
    console.file.flush()
