"""`foretune portfolio`: short lists of configurations; one of them works on most datasets."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretune.cli.option_values import SEED
from foretune.cli.output_paths import check_out
from foretune.cli.portfolio_build import BUILDERS, NORMALISATIONS, build_command
from foretune.cli.portfolio_text import describe_portfolio
from foretune.errors import UsageError

if TYPE_CHECKING:
    from foretune.methods.zero_shot.build import Recipe
    from foretune.methods.zero_shot.portfolio import Portfolio

SHIPPED = ("catboost", "lightgbm", "mlp", "xgboost", "zaml")
"""Shipped portfolios, written out so that `--help` is instant. A test compares them."""
LENGTH = 8


class PortfolioGroup(click.Group):
    """Takes `foretune portfolio SOURCE` as `foretune portfolio show SOURCE`."""

    usual = "show"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command in front of the arguments if it is left out."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [self.usual, *args]
        return super().parse_args(ctx, args)


@click.group("portfolio", cls=PortfolioGroup, no_args_is_help=True)
def portfolio_command() -> None:
    """Short lists of configurations, one of which works on most datasets.

    \b
    Examples:
      foretune portfolio lightgbm                      a known one
      foretune portfolio runs.parquet -k 8             chosen from recorded evaluations
      foretune portfolio build --help                  built by running configurations
    """


@portfolio_command.command("show")
@click.argument("source")
@click.option(
    "-k", "length", type=click.IntRange(1), help=f"Number of configurations. Default: {LENGTH}."
)
@click.option("--builder", type=click.Choice(BUILDERS), help="How they are chosen; see above.")
@click.option(
    "--budget", type=click.IntRange(1), help="Number of evaluations to use. Default: all."
)
@click.option(
    "--aggregate",
    metavar="mean|median|p90",
    help="How losses of tasks are combined. Default: mean.",
)
@click.option(
    "--normalisation",
    type=click.Choice(NORMALISATIONS),
    help="How losses of tasks are made comparable. Default: red for errors, else rank.",
)
@click.option("--metric", metavar="NAME", help="Default: the first metric of the file.")
@click.option("--most-candidates", type=click.IntRange(2), default=2000, show_default=True,
              help="The most configurations that obo scores at a time.")  # fmt: skip
@click.option("--most-rows", type=click.IntRange(2), default=2000, show_default=True,
              help="The most evaluations of a task that a forest of surrogate reads.")  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Save the portfolio (JSON).")
def show_command(
    source: str,
    length: int | None,
    builder: str | None,
    budget: int | None,
    aggregate: str | None,
    normalisation: str | None,
    metric: str | None,
    most_candidates: int,
    most_rows: int,
    seed: int,
    out: Path | None,
) -> None:
    """Build a portfolio from an experience file, or print a known one.

    SOURCE is an experience (.parquet), a portfolio made before (.json), or the name of a shipped
    one: catboost, lightgbm, mlp, xgboost, zaml.

    \b
    Builders (each evaluation of the file is a training job to them):
      naive      greedy, on configurations that at least half of the tasks have tried
      surrogate  greedy, on the predictions of one random forest for each task
      obo        chooses the jobs by Bayesian optimisation
      mf         chooses the jobs by HyperBand over tasks, without a model
    The default is naive. If tasks share no configurations, it is surrogate, on at most 100 tasks
    that are drawn at random; --builder surrogate takes all of them.

    \b
    Examples:
      foretune portfolio lightgbm
      foretune portfolio runs.parquet -k 8 -o portfolio.json
      foretune portfolio runs.parquet -k 8 --builder obo --budget 3000 -o portfolio.json
    """
    from foretune.methods.zero_shot.build import Recipe
    from foretune.methods.zero_shot.builder import Caps
    from foretune.methods.zero_shot.portfolio import as_python

    if out is not None:
        check_out(out, ".json")
    found = _find_portfolio(source)
    if found is None:
        recipe = Recipe(
            length or LENGTH,
            builder,
            budget,
            aggregate or "mean",
            normalisation,
            seed=seed,
            caps=Caps(most_candidates, most_rows),
        )
        found = _build_portfolio(source, recipe, metric)
    elif any(given is not None for given in (builder, budget, aggregate, normalisation, metric)):
        raise UsageError(
            f"a portfolio is built from an experience, but '{source}' is a portfolio already: "
            "leave the options of builders out, or name an experience file"
        )
    found = found.first(length or len(found))
    if out is not None:
        found.save(out)
    click.echo(describe_portfolio(found))
    click.echo(as_python(found.configs))
    if out is not None:
        click.echo(f"# Saved {out}")


def _find_portfolio(source: str) -> "Portfolio | None":
    """Return a portfolio that exists already, by its name or from its file."""
    from foretune.methods.zero_shot.portfolio import Portfolio
    from foretune.methods.zero_shot.shipped import portfolio

    path = Path(source)
    if path.suffix == ".json":
        return Portfolio.open(path)
    return portfolio(source) if not path.suffix and not path.exists() else None


def _build_portfolio(source: str, recipe: "Recipe", metric: str | None) -> "Portfolio":
    from foretune._base.progress import TerminalProgress
    from foretune.experience import Experience
    from foretune.methods.zero_shot.build import build

    experience = Experience.open(source, progress=TerminalProgress())
    experience = experience.with_metrics([metric or experience.metrics[0].name])
    made = build(experience, recipe, progress=TerminalProgress())
    return made.portfolio(recipe, Path(source).name)


portfolio_command.add_command(build_command)
