"""The options that say where the work of a command runs."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_EXECUTOR = click.option(
    "--executor",
    type=click.Choice(["processes", "ray"]),
    default="processes",
    show_default=True,
    help="Run on this machine, or on a Ray cluster.",
)
_ADDRESS = click.option(
    "--address",
    metavar="ADDRESS",
    help="Address of a Ray cluster. Default: RAY_ADDRESS, or start a local one.",
)


def executor_options(command: Command) -> Command:
    """Add --executor and --address, which make an `ExecutorChoice`."""
    return _EXECUTOR(_ADDRESS(command))
