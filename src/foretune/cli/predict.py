"""`foretune predict`: predict the target of new rows with a model."""

import sys
from pathlib import Path

import click

from foretune.cli.option_values import names_in


@click.command("predict")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="A .csv, .tsv or .parquet file. Default: CSV on standard output.",
)
@click.option("--probabilities", is_flag=True, help="Add a column TARGET=CLASS for each class.")
@click.option("--keep", metavar="A,B", help="Copy these columns of DATA, such as id,name. Put "
              "a name with a comma in double quotes.")  # fmt: skip
@click.option("--raw", is_flag=True, help="Write texts as they are. Default: in CSV, an apostrophe "
              "stands before texts that a spreadsheet would run as formulas.")  # fmt: skip
def predict_command(
    model: Path, data: Path, out: Path | None, probabilities: bool, keep: str | None, raw: bool
) -> None:
    """Predict the target for every row of DATA with a MODEL that `foretune fit` has written.

    DATA is a CSV, TSV or Parquet file with the columns of the table that MODEL was fitted to, in
    any order. Other columns are ignored. Files of any size are read in parts. The column of
    predictions has the name of the target.

    \b
    Examples:
      foretune predict model.foretune new.csv -o predictions.csv
      foretune predict model.foretune new.parquet -o out.parquet --probabilities
      foretune predict model.foretune new.csv --keep id,name | head
    """
    from foretune.automl.model_refusal import check_model_exists
    from foretune.tables.formats.first_look import check_is_file

    # Mistakes are refused before libraries are loaded, which takes seconds.
    check_model_exists(model)
    check_is_file(data)
    from foretune._base.progress import TerminalProgress
    from foretune.automl.final_model.model import Model
    from foretune.automl.prediction_file import PredictionOptions, predict_file

    wanted = PredictionOptions(
        probabilities, names_in(keep or None), raw
    )  # some scripts give an empty option
    notes = predict_file(
        Model.open(model), data, out or sys.stdout, wanted, progress=TerminalProgress()
    )
    for note in notes:
        click.echo(note, err=True)
    if out is not None:
        click.echo(f"Saved {out}", err=True)
