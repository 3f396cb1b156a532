"""The command as a person calls it, in this process: its exit code, and what it says."""

from __future__ import annotations

import pytest

from plackett.cli import main


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main([*map(str, arguments)])
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def sentence(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code, _, err = call(capsys, *arguments)
    assert code == 2, err
    return err.splitlines()[-1]
