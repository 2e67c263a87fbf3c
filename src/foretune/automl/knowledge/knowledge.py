"""The start of a search: experience, priors and portfolios for the user's space and metric.

There are two folders of knowledge: the one that ships with the package, and the user's own. Both
are about the whole space with every estimator, but a user may lack or exclude some estimators.
Then priors are lifted into the smaller space, and experience is restricted to it. Files are opened
when they are needed: a fit that starts from a shipped prior and portfolio reads no experience.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from foretune._base.progress import SILENT, Progress
from foretune.automl.knowledge.bundle import SHIPPED, Bundle, SpaceLessons, StoredPrior
from foretune.automl.knowledge.learn_bundle import build_portfolio
from foretune.automl.knowledge.memory import Memory, home
from foretune.automl.knowledge.relevant_experience import (
    Recommendation,
    by_metric,
    recommend_configs,
    recommend_each_algorithm,
    select_comparable,
    stand_in,
)
from foretune.automl.knowledge.subspace_priors import lift_prior
from foretune.automl.metrics import scorer
from foretune.automl.spaces import load_shipped_space
from foretune.errors import ArtifactError, ExperienceError, ForetuneError, UsageError
from foretune.experience import Experience, Metric
from foretune.experience.alignment.restriction import restrict_experience
from foretune.methods.auto.learn import cheapest_first
from foretune.methods.contracts import Prior, Target
from foretune.methods.zero_shot.portfolio import Portfolio
from foretune.report.wording import count_text
from foretune.search.method_entry import Method
from foretune.search.prior_cache import forget_priors, learnt_prior
from foretune.space import Encoded, Space
from foretune.tables import task_identity


@dataclass(frozen=True, slots=True)
class ExperienceSource:
    """A part of the experience."""

    kind: str
    """`shipped` or `own`."""
    tasks: int
    evaluations: int
    measured: str
    """The recorded metric that is used for the requested one."""
    open: Callable[[], Experience] = field(repr=False)

    def __str__(self) -> str:
        found = count_text(self.evaluations, "evaluation")
        return f"{self.kind}: {found} on {count_text(self.tasks, 'dataset')}"


@dataclass(frozen=True, slots=True)
class BundleShelf:
    """The knowledge of one folder about the whole space."""

    bundle: Bundle
    learnt: SpaceLessons
    own: bool
    """Whether it was learnt from the user's own experience."""

    def space(self) -> Space:
        """Read the whole space."""
        path = self.bundle.path(self.learnt.definition)
        return Space.from_json(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class FitKnowledge:
    """The knowledge about one space by one metric; `for_space` makes it."""

    space: Space
    """The user's space."""
    metric: Metric
    sources: tuple[ExperienceSource, ...]
    shelves: tuple[BundleShelf, ...] = ()
    """The folders with priors; the user's own comes first."""
    notes: tuple[str, ...] = ()
    """Sentences for the user about the sources."""

    @classmethod
    def for_space(
        cls,
        name: str,
        *,
        metric: str,
        own: bool = True,
        without: str | None = None,
        space: Space | None = None,
        ships: Path | None = None,
    ) -> "FitKnowledge":
        """Collect the knowledge of the package and of the user about a shipped space.

        own: whether to use the user's memory. without: the task of the table that will be searched,
        with its fingerprint; its records in the memory are left out, and so is everything that
        `foretune learn` has learnt from them. space: the part of the space with some estimators;
        the whole space if None. ships: the shipped folder of knowledge; the package's if None.
        """
        chosen = load_shipped_space(name)
        measured = scorer(metric, chosen.task).metric
        shelves = _shelves(Bundle.open(ships or SHIPPED), name, own=False)
        sources = [_shipped_source(shelf, metric) for shelf in shelves]
        notes = []
        if own:
            try:
                sources += _own_sources(Memory.of_user(), name, metric, without)
                shelves = [*_own_shelves(name, shelves, without), *shelves]
            except ForetuneError as error:
                notes.append(f"your own experience is left out ({error})")
        notes += [
            f"the {each.kind} experience did not measure {metric}; {each.measured} is used instead"
            for each in sources
            if each.measured != metric
        ]
        space = chosen.build() if space is None else space
        return cls(space, measured, tuple(sources), tuple(shelves), tuple(notes))

    @cached_property
    def whole(self) -> Experience | None:
        """All experience, in the space of the first source, by the requested metric."""
        found: Experience | None = None
        for source in self.sources:
            part = by_metric(source.open(), self.metric)
            if found is None:
                found = part
                continue
            try:
                found = found.merge(restrict_experience(part, found.space, drop_unknown=True))
            except ExperienceError:
                continue  # None of its configurations is in the space.
        return found

    @cached_property
    def experience(self) -> Experience | None:
        """All experience in the user's space; None if there is none."""
        try:
            if self.whole is None:
                return None
            # Spaces of earlier versions have hyperparameters that are gone, such as rounds.
            return restrict_experience(self.whole, self.space, drop_unknown=True)
        except ExperienceError:
            return None

    @property
    def tasks(self) -> int:
        """The number of datasets that the experience comes from."""
        return sum(source.tasks for source in self.sources)

    def prior(
        self,
        method: Method,
        *,
        seed: int = 0,
        progress: Progress = SILENT,
        begins: bool = True,
    ) -> Prior:
        """Return the prior of a method: a stored one, or one that is learnt now and cached.

        begins: whether its opening is needed. Choosing it for a part of the space takes a while.
        """
        if not self.sources or not method.transfers:
            return method.learn(None, seed=seed, progress=progress)
        for shelf, file in self._find_priors(method):
            try:
                return self._lift(method.load(shelf.bundle.path(file)), shelf, begins=begins)
            except ArtifactError:
                if not shelf.own:
                    raise  # If the user's own prior is damaged, the shipped one is used.
        if self.experience is None:
            return method.learn(None, seed=seed, progress=progress)
        return learnt_prior(method, self.experience, seed=seed, progress=progress)

    def origin(self, method: Method) -> str:
        """Return where the prior of this method comes from, in words."""
        for shelf, _ in self._find_priors(method):
            whose = "your own" if shelf.own else "the shipped"
            date = shelf.learnt.about.get("date", "an earlier day")
            return f"{whose} prior, learnt on {date} from {shelf.learnt.tasks} datasets"
        return f"learnt now from {self.tasks} datasets" if self.sources else "no experience"

    def portfolio(self, k: int) -> Encoded:
        """Return the k configurations of the user's space to try first, in order.

        They complement each other: each suits tasks that the earlier ones did not suit.
        """
        for shelf in self.shelves:
            file = shelf.learnt.portfolios.get(self.metric.name)
            if file is None or shelf.learnt.space != self.space.fingerprint:
                continue
            try:
                found = Portfolio.open(shelf.bundle.path(file))
            except ArtifactError:
                if not shelf.own:
                    raise
                continue
            if len(found) >= k:
                return self.space.encode(found.first(k).configs)
        built = build_portfolio(self._required_experience, k, source="experience")
        return self.space.encode(built.configs)

    def suggest(self, k: int, features: Mapping[str, float]) -> Recommendation:
        """Return the k configurations to try first on a table of these meta-features, in order.

        This is like `portfolio`, but datasets that are similar to the table count more.
        """
        return recommend_configs(select_comparable(self._required_experience), k, features)

    def recommend_each_algorithm(
        self, choice: str, features: Mapping[str, float]
    ) -> dict[str, tuple[dict[str, Any], float]]:
        """Return for each algorithm its best configuration on similar datasets, and its seconds."""
        return recommend_each_algorithm(
            select_comparable(self._required_experience), choice, features
        )

    def _find_priors(self, method: Method) -> Iterator[tuple[BundleShelf, StoredPrior]]:
        """Yield the files of a method's priors: those by the metric first, then by its stand-in."""
        found = [(shelf, shelf.learnt.priors.get(method.name, {})) for shelf in self.shelves]
        recorded = list(dict.fromkeys(metric for _, of in found for metric in of))
        spoken = stand_in(self.metric.name, recorded) if recorded else ""
        for metric in dict.fromkeys([self.metric.name, spoken]):
            yield from ((shelf, of[metric]) for shelf, of in found if metric in of)

    def _lift(self, prior: Prior, shelf: BundleShelf, *, begins: bool) -> Prior:
        """Turn a prior of the whole space into one of the user's part of it."""
        if shelf.learnt.space == self.space.fingerprint:
            return prior
        whole = shelf.space()
        k = len(prior.opening(Target(whole))) if begins else 0
        if k == 0:
            return lift_prior(prior, whole, self.space)
        first = cheapest_first(self.portfolio(k), self._required_experience)
        return lift_prior(prior, whole, self.space, first=first)

    @property
    def _required_experience(self) -> Experience:
        if self.experience is None:
            raise UsageError(
                "a portfolio or a prior needs experience, but there is none of this space: "
                "collect some with 'foretune collect', or choose a method that starts from nothing",
                rule="no-past-datasets",
            )
        return self.experience


def _shelves(bundle: Bundle, name: str, *, own: bool) -> list[BundleShelf]:
    return [BundleShelf(bundle, bundle.spaces[name], own)] if name in bundle.spaces else []


def _own_shelves(name: str, ready: Sequence[BundleShelf], without: str | None) -> list[BundleShelf]:
    """Return the knowledge that `foretune learn` saved, unless another space ships now.

    without: a task that must not be among those that were learnt from.
    """
    found = _shelves(Bundle.open(own_bundle()), name, own=True)
    spaces = {shelf.learnt.space for shelf in ready}
    found = [shelf for shelf in found if not spaces or shelf.learnt.space in spaces]
    if without is None:
        return found
    known = task_identity(without)
    return [replace(shelf, learnt=shelf.learnt.without_dataset(known)) for shelf in found]


def own_bundle() -> Path:
    """Return the folder in which `foretune learn` saves its results."""
    return home() / "knowledge"


def forget_lessons(name: str) -> None:
    """Remove the results of `foretune learn` about a space.

    A result that is still being learnt is dropped when it is ready.
    """
    Bundle(own_bundle()).change(lambda now: now.without_space(name))
    forget_priors()


def _shipped_source(shelf: BundleShelf, metric: str) -> ExperienceSource:
    learnt = shelf.learnt
    if learnt.experience is None:
        raise ArtifactError(
            "a folder of knowledge that ships holds its experience, but that of "
            f"'{shelf.bundle.folder}' is missing: install Foretune again",
            rule="damaged-knowledge",
            value=str(shelf.bundle.folder),
        )
    read = partial(_read_experience, shelf.bundle, learnt.experience)
    measured = stand_in(metric, learnt.metrics)
    return ExperienceSource("shipped", learnt.tasks, learnt.evaluations, measured, read)


def _read_experience(bundle: Bundle, file: StoredPrior) -> Experience:
    return Experience.open(bundle.path(file))


def _own_sources(
    memory: Memory, name: str, metric: str, without: str | None
) -> list[ExperienceSource]:
    known = memory.recall(name)
    if known is None:
        return []
    left = [
        task
        for task in known.tasks
        if without is None or task_identity(task) != task_identity(without)
    ]
    if not left:
        return []
    own = known.only(left)
    measured = stand_in(metric, [each.name for each in own.metrics])
    return [ExperienceSource("own", len(own.tasks), len(own), measured, lambda: own)]
