"""The command line: `python -m planner`."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from planner import __version__
from planner.cluster.errors import PlannerError

# Each module has add_parser(subparsers) and run(args) -> exit status. Only the command that is asked for is imported.
_COMMANDS = {
    "capture": "planner.cli.capture",
    "conform": "planner.cli.conform",
    "generate": "planner.cli.generate",
    "history": "planner.cli.history",
    "plan": "planner.cli.plan",
    "replay": "planner.cli.replay",
    "shadow": "planner.cli.shadow",
    "watch": "planner.cli.watch",
}

_FAILED = 2
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments; those of the process by default.

    Returns:
        The exit status: 0 when it did what was asked, 2 when it could not; `conform` has its own.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="python -m planner", description="What-if planner for Pulsar load balancing.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    asked = [name for name in arguments[:1] if name in _COMMANDS]
    for name in asked or _COMMANDS:
        import_module(_COMMANDS[name]).add_parser(commands)
    args = parser.parse_args(arguments)
    if args.command is None:
        parser.print_help()
        return 0
    try:
        status: int = import_module(_COMMANDS[args.command]).run(args)
        sys.stdout.flush()
    except PlannerError as error:
        print(f"error: {error}", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # whoever read the output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    return status


if __name__ == "__main__":
    sys.exit(main())
