"""The verbs, and how every command ends: with its result, or with one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer
import typer.main

import plackett
from plackett.cli import (
    align,
    check,
    cost,
    data,
    demo,
    distill,
    evaluate,
    export,
    landscape,
    losses,
    recipes,
    report,
    reproduce,
    sweep,
    table,
    train,
    tune,
)
from plackett.cli.letters import SPELL
from plackett.cli.stopped import Stopped
from plackett.cli.typed import remember
from plackett.errors import PlackettError

FAILED = 2
PIPE_CLOSED = 141  # 128 + SIGPIPE, as of any program that a pipe's reader leaves: what was asked for is not done

app = typer.Typer(
    name="plackett",
    help="Knowledge distillation by the Plackett-Luce choice model.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("align")(align.align)
app.command("check")(check.check)
app.command("cost")(cost.cost)
app.command("data")(data.data)
app.command("demo")(demo.demo)
app.command("distill")(distill.distill)
app.command("evaluate")(evaluate.evaluate)
app.command("export")(export.export)
app.command("landscape")(landscape.landscape)
app.command("losses")(losses.losses)
app.command("recipes")(recipes.recipes)
app.command("report")(report.report)
app.command("train")(train.train)
app.command("compare")(reproduce.compare)
app.command("reproduce")(reproduce.reproduce)
app.command("sweep")(sweep.sweep)
app.command("table")(table.table)
app.command("tune")(tune.tune)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"plackett {plackett.__version__}")
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
            stream.reconfigure(errors=SPELL)  # a terminal without ± reads +/-
    try:
        code = _run(given or ["--help"], debug)
        if sys.stdout is not None:  # None: closed by who called
            sys.stdout.flush()  # here a closed pipe can still be answered, at the interpreter's end it cannot
    except BrokenPipeError:  # `plackett losses | head -1`
        code = _leave_the_pipe()
    except SystemExit as error:  # rich's answer to it
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        code = _leave_the_pipe()
    sys.exit(code)


def _run(arguments: list[str], debug: bool) -> int:
    remember(arguments)
    try:
        command = typer.main.get_command(app)
        # Not `app()`, whose standalone mode and the other one both take closed pipes and Ctrl-C into their own hands.
        _take_brackets_as_written(command)
        with command.make_context("plackett", arguments) as context:
            command.invoke(context)
        return 0
    except typer.Exit as end:
        return end.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _say("Stopped.", Stopped.exit_code)
    except BrokenPipeError:
        raise
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
        words = " ".join(message().split())
        stop = "" if words.endswith((".", "?", "!")) else "."
        asked = getattr(getattr(error, "ctx", None), "command_path", "plackett")
        return _say(f"{words}{stop} See {asked} --help.", getattr(error, "exit_code", FAILED))


def _take_brackets_as_written(command: Any) -> None:
    """Help is read as rich's markup, which would swallow "[default: the recipe's]" as a tag that it does not know."""
    for each in (command, *getattr(command, "commands", {}).values()):
        for parameter in each.params:
            if text := getattr(parameter, "help", None):
                parameter.help = text.replace("[", "\\[")


def _leave_the_pipe() -> int:
    with suppress(OSError, ValueError):  # what is still buffered goes nowhere, and nobody is told
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
                continue
            os.dup2(nowhere, stream.fileno())
    return PIPE_CLOSED


def _say(sentence: str, code: int = FAILED) -> int:
    print(sentence, file=sys.stderr)
    return code
