"""The four builders behind one interface, and the portfolios that they build."""

from dataclasses import dataclass

from foretune._base.progress import SILENT, Progress
from foretune.errors import UsageError
from foretune.experience import Experience
from foretune.methods.zero_shot.builder import USUAL_CAPS, Builder, Caps, spend_budget
from foretune.methods.zero_shot.jobs import look_up_jobs
from foretune.methods.zero_shot.mf import HyperBand
from foretune.methods.zero_shot.naive import Naive
from foretune.methods.zero_shot.obo import OfflineBayes
from foretune.methods.zero_shot.portfolio import Portfolio
from foretune.methods.zero_shot.surrogate import MOST_FORESTS, SurrogateBuilder
from foretune.methods.zero_shot.table import loss_table
from foretune.numerics.greedy import find_aggregate
from foretune.numerics.normalise import NORMALISATIONS
from foretune.space import Encoded

BUILDERS: dict[str, type[Builder]] = {
    "naive": Naive,
    "surrogate": SurrogateBuilder,
    "obo": OfflineBayes,
    "mf": HyperBand,
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """The options of building a portfolio."""

    k: int = 8
    builder: str | None = None
    """One of `BUILDERS`. Default: `naive` if tasks share configurations, else `surrogate`."""
    budget: int | None = None
    """The most evaluations to use. Default: all."""
    aggregate: str = "mean"
    normalisation: str | None = None
    """One of `NORMALISATIONS`. Default: RED if the metric is an error, else ranks."""
    seed: int = 0
    caps: Caps = USUAL_CAPS

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(
                f"a portfolio needs at least one configuration, but got k={self.k}: ask for more",
                rule="least-one-config",
                field="k",
                value=self.k,
            )
        if self.builder is not None and self.builder not in BUILDERS:
            raise UsageError(
                f"a builder must be one of {', '.join(BUILDERS)}, but got '{self.builder}': "
                "choose one of them",
                rule="unknown-builder",
                field="builder",
                value=self.builder,
            )
        if self.normalisation is not None and self.normalisation not in NORMALISATIONS:
            raise UsageError(
                f"a normalisation must be one of {', '.join(NORMALISATIONS)}, but got "
                f"'{self.normalisation}': choose one of them",
                rule="unknown-normalisation",
                field="normalisation",
                value=self.normalisation,
            )


@dataclass(frozen=True, slots=True)
class Built:
    """Configurations in their space, in order, and how they were chosen."""

    configs: Encoded
    builder: str
    losses: tuple[float, ...]
    jobs: int
    normalisation: str

    def portfolio(self, recipe: Recipe, source: str) -> Portfolio:
        """As a portfolio to keep, naming where the evaluations come from."""
        return Portfolio(
            configs=tuple(self.configs.dicts()),
            builder=self.builder,
            source=source,
            losses=tuple(round(loss, 6) for loss in self.losses),
            aggregate=recipe.aggregate,
            normalisation=self.normalisation,
            jobs=self.jobs,
            fingerprint=self.configs.space.fingerprint,
        )


def build(
    experience: Experience | None,
    recipe: Recipe,
    *,
    progress: Progress = SILENT,
    most_forests: int = MOST_FORESTS,
) -> Built:
    """Build a portfolio from past evaluations. At most `most_forests` tasks need a forest."""
    aggregate = find_aggregate(recipe.aggregate)
    table = loss_table(experience, recipe.normalisation)
    builder = recipe.builder or ("naive" if table.has_common_configs else "surrogate")
    if recipe.builder is None and builder == "surrogate":
        table = table.some_tasks(most_forests, seed=recipe.seed)
    jobs = look_up_jobs(table, recipe.budget, progress=progress)
    progress.start(f"building a portfolio ({builder})", jobs.budget)
    try:
        chooser = BUILDERS[builder](jobs, recipe.k, aggregate, seed=recipe.seed, caps=recipe.caps)
        picks = spend_budget(chooser, jobs)
    finally:
        progress.stop()
    return Built(
        configs=jobs.candidates.take(picks.chosen),
        builder=builder,
        losses=tuple(float(loss) for loss in picks.losses),
        jobs=jobs.used,
        normalisation=table.normalisation,
    )


def portfolio_start(experience: Experience, recipe: Recipe | None = None) -> Encoded:
    """A portfolio as the first trials of any optimiser: `Optimizer(..., start=...)`."""
    return build(experience, recipe or Recipe()).configs
