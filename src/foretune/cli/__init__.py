"""The command line. Commands import what they need when they run, so `--help` is instant."""

import os
import sys
import warnings
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

from foretune._base.threads import ONE_NUMERIC_THREAD
from foretune.cli.experience_memory import experience_group
from foretune.cli.fit import fit_command
from foretune.cli.import_and_show import import_command, show_command
from foretune.cli.learn import learn_command
from foretune.cli.methods import methods_command
from foretune.cli.portfolio import portfolio_command
from foretune.cli.predict import predict_command
from foretune.cli.spaces import spaces_command
from foretune.cli.suggest import suggest_command
from foretune.cli.tune import tune_command
from foretune.errors import ForetuneError, ForetuneWarning, explain_missing_extras
from foretune.run import stopping

__all__ = ["COMMANDS", "CommandGroup", "foretune", "main"]

# BLAS makes small matrices many times slower when it uses several threads. A setting of the user
# wins. The variables count only before NumPy is imported.
for _variable, _threads in ONE_NUMERIC_THREAD.items():
    os.environ.setdefault(_variable, _threads)


COMMANDS = "foretune.commands"
"""The group of entry points by which other packages add commands."""


class CommandGroup(click.Group):
    """Lists commands as they were added, the ones most used first, then those of other packages.

    A command of another package is imported when it is looked up. That package may import this one.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were added."""
        del ctx
        return [*self.commands, *sorted(_plugin_commands())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name."""
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in _plugin_commands():
            found = _plugin_commands()[cmd_name].load()
        return found


@cache
def _plugin_commands() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=COMMANDS)}


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="foretune", prog_name="foretune")
def foretune() -> None:
    """Tune hyperparameters, starting from what past runs taught.

    \b
    Examples:
      foretune fit --demo                                see it work
      foretune fit train.csv --target label              find, fit and save a strong model
      foretune predict train-foretune/model.foretune new.csv -o predictions.csv
      foretune tune train:error --space space.json       tune any function or command
      foretune bench demo                                compare methods on recorded results
    """


for _command in (
    fit_command,
    predict_command,
    suggest_command,
    tune_command,
    experience_group,
    learn_command,
    spaces_command,
    methods_command,
    portfolio_command,
    import_command,
    show_command,
):
    foretune.add_command(_command)


_as_python_shows_it = warnings.showwarning


def _show_warning(
    message: Warning | str, category: type[Warning], *where: Any, **more: Any
) -> None:
    """Show warnings of Foretune as one sentence, and others as Python does."""
    if issubclass(category, ForetuneWarning):
        click.echo(f"foretune: {message}", err=True)
    else:
        _as_python_shows_it(message, category, *where, **more)


def main() -> None:
    """Run the command line. A mistake of the user gives one sentence and exit code 2."""
    warnings.showwarning = _show_warning
    # When a scheduler or a terminal ends the command, running trials are let go as after Ctrl-C.
    # Otherwise they would count as trials that kill their process.
    stopping.listen()
    try:
        # Some methods import an optional package only when they have trials to fit.
        with explain_missing_extras("this command"):
            foretune(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as mistake:
        mistake.show()
        sys.exit(2)
    except ForetuneError as mistake:
        click.echo(f"foretune: {mistake}", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("foretune: stopped; the same command resumes where that is possible", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away (`| head`). That is no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as failure:
        where = f" ({failure.filename})" if failure.filename else ""
        click.echo(f"foretune: {failure.strerror or failure}{where}", err=True)
        sys.exit(2)
