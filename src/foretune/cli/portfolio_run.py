"""One run of `foretune portfolio build`, described by its options, and carried out."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretune.cli.display import BestSoFar
from foretune.cli.output_paths import check_experience_out, check_out
from foretune.cli.tune_output import NOTHING_FOUND, STOPPED
from foretune.errors import UsageError

if TYPE_CHECKING:
    from foretune.automl.live_portfolio.run import FinishedBuild, LiveBuild
    from foretune.experience import Metric
    from foretune.experience.trial import Trial
    from foretune.methods.zero_shot.build import Recipe
    from foretune.run.commands import Command
    from foretune.run.executor_choice import ExecutorChoice
    from foretune.run.named_function import NamedFunction


class BuildSoFar(BestSoFar):
    """How many configurations were tried on how many tasks so far."""

    def __init__(self, metric: "Metric", build: "LiveBuild") -> None:
        super().__init__([metric])
        self._space = build.space
        self._tried: set[str] = set()
        self._tasks: set[str] = set()

    def take(self, trial: "Trial") -> bool:
        """Count an evaluation. None is better than others: tasks differ."""
        from foretune.experience import Status

        task, config = self._space.split(trial.config)
        self.ended += 1
        self.failed += trial.status is not Status.DONE
        self._tasks.add(task)
        self._tried.add(repr(sorted(config.items(), key=str)))
        return False

    def __str__(self) -> str:
        if not self.ended:
            return "the first evaluations are running"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{len(self._tried)} configurations on {len(self._tasks)} tasks{failed}"


@dataclass(frozen=True, kw_only=True)
class PortfolioRun:
    """What is built from what, and what is kept: the options of the command."""

    function: str | None
    command: str | None
    tasks: Path
    target: str | None
    space: str
    only: str | None
    size: int
    builder: str
    budget: int | None
    seconds: float | None
    journal: str
    study: str
    experience: tuple[str, ...]
    experience_out: Path | None
    remember: bool
    metric: str | None
    aggregate: str
    normalisation: str | None
    candidates: int
    most_candidates: int
    most_rows: int
    folds: int
    max_rows: int
    jobs: int
    executor: str
    address: str | None
    time_limit: float | None
    memory: float | None
    seed: int
    out: Path | None

    def run(self) -> int:
        """Build, print and save, and return the exit code."""
        from foretune.cli.display import display

        self._check_outputs()
        build = self._with_past(self._build())
        self._say_caps(build)
        score = BuildSoFar(build.metric, build)
        with display([build.metric], build.recipe.budget, self.seconds, score=score) as watch:
            done = build.run(watch)
        if self.remember:
            self._remember(build, done)
        return self._report(done)

    @property
    def experience_path(self) -> Path:
        """Where the evaluations are saved as experience."""
        if self.experience_out is not None:
            return self.experience_out
        if self.out is not None:
            return self.out.with_suffix(".parquet")
        return Path(f"{'foretune-portfolio' if '://' in self.journal else self.journal}.parquet")

    def _check_outputs(self) -> None:
        from foretune.automl.live_portfolio.api import journal_url
        from foretune.stores.optuna.study import check_store

        if self.out is not None:
            check_out(self.out, ".json")
            if self.out.absolute() == self.tasks.absolute():
                raise UsageError(
                    f"the portfolio must be saved to another file than --tasks, but got "
                    f"'{self.out}' for both: name another"
                )
        check_experience_out(self.experience_path)
        check_store(journal_url(self.journal))

    def _recipe(self) -> "Recipe":
        from foretune.automl.live_portfolio.api import usual_budget
        from foretune.methods.zero_shot.build import Recipe
        from foretune.methods.zero_shot.builder import Caps
        from foretune.numerics.greedy import find_aggregate

        find_aggregate(self.aggregate)
        return Recipe(
            self.size,
            self.builder,
            usual_budget(self.budget, self.seconds),
            self.aggregate,
            self.normalisation,
            seed=self.seed,
            caps=Caps(self.most_candidates, self.most_rows),
        )

    def _build(self) -> "LiveBuild":
        """Describe the build: on tables, or on what a function or a command evaluates."""
        from foretune.automl.live_portfolio.api import journal_url
        from foretune.run.executor import Limits
        from foretune.run.executor_choice import ExecutorChoice

        recipe, site = self._recipe(), ExecutorChoice(self.executor, self.address)
        is_list = self.tasks.suffix.lower() == ".json"
        build = self._of_list(recipe) if is_list else self._of_tables(recipe, site)
        limits = Limits(self.time_limit, None, self._memory if self.command is None else None)
        return replace(
            build,
            seconds=self.seconds,
            candidates=self.candidates,
            store=journal_url(self.journal),
            study=self.study,
            workers=self.jobs,
            site=site,
            limits=limits,
            experience=self.experience_path,
        )

    @property
    def _memory(self) -> int | None:
        return int(self.memory) if self.memory else None

    def _of_tables(self, recipe: "Recipe", site: "ExecutorChoice") -> "LiveBuild":
        from foretune._base.progress import TerminalProgress
        from foretune.automl.live_portfolio.api import table_build
        from foretune.automl.spaces import load_shipped_space
        from foretune.cli.option_values import names_in

        if self.function or self.command or self.target is None:
            raise UsageError(
                "tables are evaluated with a shipped --space and need a --target, but got "
                f"{'no --target' if self.target is None else 'a function or a command'}: give "
                "--target alone, or a .json file as --tasks"
            )
        home = "foretune-portfolio" if "://" in self.journal else self.journal
        return table_build(
            load_shipped_space(self.space),
            self.tasks,
            self.target,
            only=names_in(self.only),
            metric=self.metric,
            folds=self.folds,
            kept=Path(f"{home}.tables"),
            most_rows=self.max_rows,
            site=site,
            recipe=recipe,
            progress=TerminalProgress(),
        )

    def _of_list(self, recipe: "Recipe") -> "LiveBuild":
        from foretune.automl.live_portfolio.api import function_build, read_task_list
        from foretune.cli.tune_options import resolve_metrics, resolve_space

        if (self.function is None) == (self.command is None) or self.target or self.only:
            raise UsageError(
                "tasks of a .json file need a function (module:function) or a --command, and no "
                "--target or --only: give one of the two"
            )
        [metric] = resolve_metrics([self.metric] if self.metric else [], None, None)
        return function_build(
            self._make_evaluator(),
            str(self.function or self.command),
            read_task_list(self.tasks),
            resolve_space(Path(self.space), None),
            metric,
            recipe,
        )

    def _make_evaluator(self) -> "NamedFunction | Command":
        from foretune.run.commands import Command, CommandLimits
        from foretune.run.named_function import NamedFunction

        if self.function is not None:
            return NamedFunction(self.function, Path.cwd())
        assert self.command is not None
        return Command(self.command, CommandLimits(self._memory))

    def _with_past(self, build: "LiveBuild") -> "LiveBuild":
        """Return the build with the past runs that it starts from."""
        from foretune.automl.live_portfolio.api import journal_url
        from foretune.cli.past_run_alignment import carry_over_past
        from foretune.cli.past_runs import open_past_runs

        if not self.experience:
            return build
        past = open_past_runs(self.experience, store=journal_url(self.journal), study=self.study)
        known = carry_over_past(past, build.space.space, [build.metric], ())
        return build if known is None else replace(build, past=known.experience)

    def _say_caps(self, build: "LiveBuild") -> None:
        """Say where a cap binds."""
        binds = self.builder == "obo" and self.candidates > self.most_candidates
        if binds:
            click.echo(
                f"obo scores at most {self.most_candidates:,} of {self.candidates:,} candidates "
                "at a time: --most-candidates changes this",
                err=True,
            )
        if self.builder == "surrogate" and (build.recipe.budget or 0) > self.most_rows:
            click.echo(
                f"each forest reads at most {self.most_rows:,} evaluations of its task: "
                "--most-rows changes this",
                err=True,
            )

    def _remember(self, build: "LiveBuild", done: "FinishedBuild") -> None:
        """Let later fits and `foretune learn` know what was evaluated on tables."""
        from foretune.automl.knowledge.memory import Memory
        from foretune.automl.live_portfolio.knowledge import name_for_memory

        tables: dict[str, Any] = build.settings.get("tables", {})
        if not tables or done.experience is None:
            return
        Memory.of_user().add(self.space, name_for_memory(done.experience, tables))

    def _report(self, done: "FinishedBuild") -> int:
        """Print and save the portfolio, and return the exit code."""
        from foretune.cli.portfolio_text import describe_portfolio
        from foretune.experience import Status
        from foretune.methods.zero_shot.portfolio import as_python

        ended = [trial for trial in done.trials if trial.is_over]
        failed = [trial for trial in ended if trial.status is not Status.DONE]
        click.echo(f"{len(ended)} evaluations ended, {len(failed)} of them failed", err=True)
        for reason, times in Counter(each.reason for each in failed).most_common(3):
            click.echo(f"  {times} x {reason}", err=True)
        if done.free:
            click.echo(f"{done.free} evaluations of past runs were taken over", err=True)
        if done.portfolio is not None:
            if self.out is not None:
                done.portfolio.save(self.out)
            click.echo(describe_portfolio(done.portfolio))
            click.echo(as_python(done.portfolio.configs))
            for path in (self.out, self.experience_path):
                if path is not None and path.exists():
                    click.echo(f"# Saved {path}")
        if done.ending is None:
            click.echo("Stopped; the same command goes on from here.", err=True)
            return STOPPED
        return 0 if done.portfolio is not None else NOTHING_FOUND
