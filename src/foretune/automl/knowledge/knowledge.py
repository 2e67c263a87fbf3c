"""What a search begins with: experience, priors and portfolios for the user's space and metric.

Two folders know something: the one that ships with the package, and the user's own. Both speak of
the whole of a space, with every estimator; a user may lack some of them or exclude them. Priors of
the whole are lifted into that part, experience is narrowed to it. Files are opened when they are
needed: a fit that starts from the shipped prior and portfolio reads no experience at all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from foretune._base.progress import SILENT, Progress
from foretune.automl.knowledge.bundle import SHIPPED, Bundle, SpaceLessons, StoredPrior
from foretune.automl.knowledge.learn_bundle import comparable, portfolio_of
from foretune.automl.knowledge.memory import Memory, home
from foretune.automl.knowledge.metric_choice import by_metric, stand_in
from foretune.automl.knowledge.subspace_priors import lift_prior
from foretune.automl.knowledge.task_similarity import Recommendation, recommend_configs
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
from foretune.tables.identity import identity


@dataclass(frozen=True, slots=True)
class ExperienceSource:
    """A part of the experience."""

    kind: str
    """`shipped` or `own`."""
    tasks: int
    evaluations: int
    measured: str
    """The recorded metric that speaks for the one asked for."""
    open: Callable[[], Experience] = field(repr=False)

    def __str__(self) -> str:
        found = count_text(self.evaluations, "evaluation")
        return f"{self.kind}: {found} on {count_text(self.tasks, 'dataset')}"


@dataclass(frozen=True, slots=True)
class BundleShelf:
    """What one folder has learnt about the whole space."""

    bundle: Bundle
    learnt: SpaceLessons
    own: bool
    """Whether it knows the user's own experience."""

    def space(self) -> Space:
        """The whole space."""
        path = self.bundle.path(self.learnt.definition)
        return Space.from_json(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class FitKnowledge:
    """What is known about one space by one metric; made by `for_space`."""

    space: Space
    """The user's."""
    metric: Metric
    sources: tuple[ExperienceSource, ...]
    shelves: tuple[BundleShelf, ...] = ()
    """Folders with priors, the one that knows most first."""
    notes: tuple[str, ...] = ()
    """What the user should hear about how it came together."""

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
        """What the package and the user know about a shipped space.

        own: whether to use what was remembered. without: a task, with its fingerprint, whose own
        records are left out, and whatever `foretune learn` has learnt from them: those of the table
        that is about to be searched, where they are used as its trials. space: where it is narrowed
        to some estimators; the whole if None. ships: another folder than the one that comes with
        the package.
        """
        chosen = load_shipped_space(name)
        measured = scorer(metric, chosen.task).metric
        shelves = _shelves(Bundle.open(ships or SHIPPED), name, own=False)
        sources = [_shipped_source_of(shelf, metric) for shelf in shelves]
        notes = []
        if own:
            try:
                sources += _own_sources(Memory.of_user(), name, metric, without)
                shelves = [*_own_shelves(name, shelves, without), *shelves]
            except ForetuneError as error:
                notes.append(f"your own experience is left out ({error})")
        notes += [_stands_in(source, metric) for source in sources if source.measured != metric]
        space = chosen.build() if space is None else space
        return cls(space, measured, tuple(sources), tuple(shelves), tuple(notes))

    @cached_property
    def whole(self) -> Experience | None:
        """All experience, in the space of the first source, by the metric asked for."""
        found: Experience | None = None
        for source in self.sources:
            part = by_metric(source.open(), self.metric)
            if found is None:
                found = part
                continue
            try:
                found = found.merge(restrict_experience(part, found.space))
            except ExperienceError:
                continue  # nothing of it lies in the space
        return found

    @cached_property
    def experience(self) -> Experience | None:
        """All experience in the user's space; None where nothing of it lies there."""
        try:
            return None if self.whole is None else restrict_experience(self.whole, self.space)
        except ExperienceError:
            return None

    @property
    def tasks(self) -> int:
        """How many datasets it comes from."""
        return sum(source.tasks for source in self.sources)

    def prior(
        self,
        method: Method,
        *,
        seed: int = 0,
        progress: Progress = SILENT,
        begins: bool = True,
    ) -> Prior:
        """What `method` knows before the first trial: kept, or else learnt now and cached.

        begins: whether its opening is needed, which in a part of the space takes a while to choose.
        """
        if not self.sources or not method.transfers:
            return method.learn(None, seed=seed, progress=progress)
        for shelf, kept in self._stored_priors(method):
            try:
                return self._here(method.load(shelf.bundle.path(kept)), shelf, begins=begins)
            except ArtifactError:
                if not shelf.own:
                    raise  # of the user's own, what ships still serves
        if self.experience is None:
            return method.learn(None, seed=seed, progress=progress)
        return learnt_prior(method, self.experience, seed=seed, progress=progress)

    def origin(self, method: Method) -> str:
        """Where `prior` of this method comes from, in words."""
        for shelf, _ in self._stored_priors(method):
            whose = "your own" if shelf.own else "the shipped"
            date = shelf.learnt.about.get("date", "an earlier day")
            return f"{whose} prior, learnt on {date} from {shelf.learnt.tasks} datasets"
        return f"learnt now from {self.tasks} datasets" if self.sources else "no experience"

    def portfolio(self, k: int) -> Encoded:
        """The k configurations of the user's space to try first, in order.

        They complement each other: each helps tasks that those before it did not suit.
        """
        for shelf in self.shelves:
            kept = shelf.learnt.portfolios.get(self.metric.name)
            if kept is None or shelf.learnt.space != self.space.fingerprint:
                continue
            try:
                found = Portfolio.open(shelf.bundle.path(kept))
            except ArtifactError:
                if not shelf.own:
                    raise
                continue
            if len(found) >= k:
                return self.space.encode(found.first(k).configs)
        built = portfolio_of(self._experience_sources(), k, source="experience")
        return self.space.encode(built.configs)

    def suggest(self, k: int, features: Mapping[str, float]) -> Recommendation:
        """The k configurations to try first on a table of these meta-features, in order.

        As `portfolio`, but datasets that are like the table count more.
        """
        return recommend_configs(comparable(self._experience_sources()), k, features)

    def _stored_priors(self, method: Method) -> Iterator[tuple[BundleShelf, StoredPrior]]:
        """Where priors of a method lie: by the metric itself, then by what speaks for it."""
        found = [(shelf, shelf.learnt.priors.get(method.name, {})) for shelf in self.shelves]
        recorded = list(dict.fromkeys(metric for _, of in found for metric in of))
        spoken = stand_in(self.metric.name, recorded) if recorded else ""
        for metric in dict.fromkeys([self.metric.name, spoken]):
            yield from ((shelf, of[metric]) for shelf, of in found if metric in of)

    def _here(self, prior: Prior, shelf: BundleShelf, *, begins: bool) -> Prior:
        """A prior of the whole space for the user's part of it."""
        if shelf.learnt.space == self.space.fingerprint:
            return prior
        whole = shelf.space()
        k = len(prior.opening(Target(whole))) if begins else 0
        if k == 0:
            return lift_prior(prior, whole, self.space)
        first = cheapest_first(self.portfolio(k), self._experience_sources())
        return lift_prior(prior, whole, self.space, first=first)

    def _experience_sources(self) -> Experience:
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
    """What `foretune learn` has kept, unless the package has another space by that name since.

    without: a task that nothing of it may have been learnt from.
    """
    found = _shelves(Bundle.open(own_bundle()), name, own=True)
    spaces = {shelf.learnt.space for shelf in ready}
    found = [shelf for shelf in found if not spaces or shelf.learnt.space in spaces]
    if without is None:
        return found
    known = identity(without)
    return [replace(shelf, learnt=shelf.learnt.unaware_of(known)) for shelf in found]


def own_bundle() -> Path:
    """The folder that keeps what `foretune learn` has learnt for the user."""
    return home() / "knowledge"


def forget_learnt(name: str) -> None:
    """Drop what `foretune learn` has learnt about a space: it knew what is to be forgotten.

    What it is still learning now is dropped when it is done.
    """
    Bundle(own_bundle()).change(lambda now: now.without_space(name))
    forget_priors()


def _shipped_source_of(shelf: BundleShelf, metric: str) -> ExperienceSource:
    learnt = shelf.learnt
    if learnt.experience is None:
        raise ArtifactError(
            "a folder of knowledge that ships holds its experience, but that of "
            f"'{shelf.bundle.folder}' is missing: install Foretune again",
            rule="damaged-knowledge",
            value=str(shelf.bundle.folder),
        )
    opened = partial(_open, shelf.bundle, learnt.experience)
    measured = stand_in(metric, learnt.metrics)
    return ExperienceSource("shipped", learnt.tasks, learnt.evaluations, measured, opened)


def _open(bundle: Bundle, kept: StoredPrior) -> Experience:
    return Experience.open(bundle.path(kept))


def _own_sources(
    memory: Memory, name: str, metric: str, without: str | None
) -> list[ExperienceSource]:
    known = memory.recall(name)
    if known is None:
        return []
    left = [task for task in known.tasks if without is None or identity(task) != identity(without)]
    return [_own_source(known.only(left), metric)] if left else []


def _own_source(experience: Experience, metric: str) -> ExperienceSource:
    measured = stand_in(metric, [each.name for each in experience.metrics])
    return ExperienceSource(
        "own", len(experience.tasks), len(experience), measured, lambda: experience
    )


def _stands_in(source: ExperienceSource, metric: str) -> str:
    return f"the {source.kind} experience did not measure {metric}; {source.measured} speaks for it"
