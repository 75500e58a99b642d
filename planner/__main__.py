"""The command line: `python -m planner`, and `pulsar-bundle-planner` where the package is installed."""

import io
import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, UnusedCliTokensError

from planner import __version__
from planner.cli.help import PlainHelp, refuse_no_path
from planner.cluster.errors import PlannerError, shown

COMMANDS = (
    "bundles",
    "capture",
    "conform",
    "dashboard",
    "fix",
    "generate",
    "history",
    "lint",
    "optimize",
    "plan",
    "replay",
    "shadow",
    "snapshot",
    "upgrade",
    "watch",
)
"""All commands: each is what the module of its name in `planner.cli` calls so, imported when it is needed."""

_PROGRAM = "pulsar-bundle-planner"
_FAILED = 2
_INTERRUPTED = 130


def program(name: str) -> App:
    """Return all commands as one program.

    Args:
        name: What the program is called in its help.
    """
    app = App(
        name=name,
        help="What-if planner for Pulsar load balancing.",
        version=f"{name} {__version__}",
        help_format="plaintext",
        version_format="plaintext",
        help_formatter=PlainHelp(),
        exit_on_error=False,
        print_error=False,
        default_parameter=Parameter(negative=(), allow_repeating=True, validator=refuse_no_path),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for command in COMMANDS:
        app.command(f"planner.cli.{command}:{command}", name=command)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; without one, print the help.

    Args:
        argv: The arguments; those of the process by default.

    Returns:
        The exit status: 0 when it did what was asked, 2 when it could not; `conform` has its own.

    Raises:
        SystemExit: With status 2 when the arguments cannot be understood.
    """
    return _run(program("python -m planner"), argv)


def console(argv: Sequence[str] | None = None) -> int:
    """Run a command as `main` does; without one, open the dashboard."""
    from planner.cli.dashboard import dashboard  # noqa: PLC0415 - only this program has a default

    app = program(_PROGRAM)
    app.default(dashboard)
    return _run(app, argv)


def _run(app: App, argv: Sequence[str] | None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be UTF-8
    try:
        arguments = list(sys.argv[1:] if argv is None else argv)
        if not set(arguments[:1]) & set(COMMANDS):  # the list of commands has the first sentence of each
            for name in COMMANDS:
                app[name]
        status: int | None = app(arguments)
        sys.stdout.flush()
    except CycloptsError as error:
        print(f"error: {shown(_said(error))} Use --help to see the options.", file=sys.stderr)
        raise SystemExit(_FAILED) from error
    except PlannerError as error:
        print(f"error: {error}", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # whoever read the output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    return status or 0


def _said(error: CycloptsError) -> str:
    """Return what is wrong with the arguments; of an option that is missing, where a value without it may belong."""
    command = " ".join(error.command_chain or ())
    if isinstance(error, UnusedCliTokensError):
        return f"{command or 'The program'} does not take {' '.join(error.unused_tokens or ())}."
    if not isinstance(error, MissingArgumentError) or error.argument is None or error.argument.tokens:
        return " ".join(str(error).split())
    if error.keyword is not None:
        return f"{error.keyword} needs a value."
    option = error.argument.name
    first = next(iter(error.unused_tokens or ()), "-")
    hint = "" if first.startswith("-") else f" Is that {first}? Then write {option} {first}."
    return f"{command} needs {option}.{hint}"


if __name__ == "__main__":
    sys.exit(main())
