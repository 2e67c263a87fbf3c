"""The options by which commands say where their work runs."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_EXECUTOR = click.option(
    "--executor",
    type=click.Choice(["processes", "ray"]),
    default="processes",
    show_default=True,
    help="Where the work is done.",
)
_ADDRESS = click.option(
    "--address", metavar="ADDRESS", help="Of a Ray cluster; else RAY_ADDRESS, or new."
)


def executor_options(command: Command) -> Command:
    """Add --executor and --address, which make a `Site`."""
    return _EXECUTOR(_ADDRESS(command))
