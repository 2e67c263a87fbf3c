"""`foretune spaces`: list the shipped search spaces."""

import click

from foretune.cli.option_values import names_in
from foretune.errors import UsageError


@click.command("spaces")
@click.argument("name", required=False)
@click.option("--only", metavar="NAMES", help="Keep only these estimators, e.g. lightgbm,rf.")
def spaces_command(name: str | None, only: str | None) -> None:
    """List the shipped search spaces, or the hyperparameters of the one called NAME.

    \b
    Examples:
      foretune spaces
      foretune spaces pipeline-classification --only lightgbm,rf
    """
    from foretune.automl.spaces import SPACES, ZERO_SHOT, load_shipped_space

    if name is not None:
        click.echo(load_shipped_space(name).build(names_in(only)).describe())
        return
    if only is not None:
        raise UsageError(
            "--only needs the name of a space, but got none: type  foretune spaces NAME "
            f"--only {only},  where NAME is one of {', '.join(SPACES | ZERO_SHOT)}"
        )
    for each in (*SPACES.values(), *ZERO_SHOT.values()):
        space = each.build()
        click.echo(f"{each.name}: {each.summary}")
        click.echo(f"  {len(space)} hyperparameters, for {each.task}")
        click.echo(f"  {each.choice}: {', '.join(each.algorithms())}")
