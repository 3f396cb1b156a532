"""The verbs, and how every command ends: with its result, or with one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import plackett
from plackett.cli import data, demo, losses, report
from plackett.cli.stopped import Stopped
from plackett.errors import PlackettError

FAILED = 2

app = typer.Typer(
    name="plackett",
    help="Knowledge distillation by the Plackett-Luce choice model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("data")(data.data)
app.command("demo")(demo.demo)
app.command("losses")(losses.losses)
app.command("report")(report.report)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"plackett {plackett.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits the process."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given  # wherever it stands: it is thought of when the command has already failed
    given = [argument for argument in given if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ± shows ? and goes on
    sys.exit(_run(given, debug))


def _run(arguments: list[str], debug: bool) -> int:
    try:
        code: Any = app(arguments, standalone_mode=False, prog_name="plackett")
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        return _say("Stopped.", Stopped.exit_code)
    except BrokenPipeError:  # `plackett losses | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except PlackettError as error:
        if debug:
            raise
        return _say(str(error), getattr(error, "exit_code", FAILED))
    except OSError as error:
        if debug:
            raise
        return _say(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.")
    except Exception as error:
        message = getattr(error, "format_message", None)  # what the command line's parser complains of
        if debug or message is None:
            raise
        return _say(f"{message()} See plackett --help.", getattr(error, "exit_code", FAILED))


def _say(sentence: str, code: int = FAILED) -> int:
    print(sentence, file=sys.stderr)
    return code
