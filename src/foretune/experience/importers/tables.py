"""Reading a CSV or Parquet file into a data frame."""

from pathlib import Path

import pandas as pd
import pyarrow as pa

from foretune.errors import ExperienceError
from foretune.experience.importers.archive import existing
from foretune.experience.importers.packed import DAMAGED, unpacked
from foretune.progress import Progress, tracked

CSV = (".csv", ".csv.gz", ".csv.zip", ".csv.bz2", ".csv.xz", ".tsv", ".tsv.gz")
PARQUET = (".parquet", ".pq")


def read_table(source: Path | str, progress: Progress) -> pd.DataFrame:
    """The rows of the CSV (also packed) or Parquet file at `source`, at least one."""
    [frame] = tracked(map(_read, [existing(source)]), progress, "reading the table", 1)
    return frame


def _read(path: Path) -> pd.DataFrame:
    name = path.name.lower()
    if not name.endswith((*CSV, *PARQUET)):
        raise ExperienceError(
            f"a table must be a CSV (also packed) or Parquet file, but got '{path.name}': its "
            f"name must end with one of {', '.join((*CSV, *PARQUET))}"
        )
    try:
        if name.endswith(PARQUET):
            frame = pd.read_parquet(path)
        else:
            with unpacked(path) as stream:
                separator = "\t" if ".tsv" in name else ","
                frame = pd.read_csv(stream, sep=separator, low_memory=False)
    except (pa.ArrowException, ValueError, *DAMAGED) as error:  # pandas' own are ValueErrors
        raise _unreadable(path, error) from error
    if frame.empty:
        raise ExperienceError(f"a table must have at least one row, but '{path}' has none")
    return frame


def need_columns(frame: pd.DataFrame, names: list[str], source: Path | str) -> None:
    """Refuse a frame that lacks one of the columns `names`."""
    for name in names:
        if name not in frame.columns:
            known = ", ".join(f"'{column}'" for column in list(frame.columns)[:12])
            raise ExperienceError(
                f"the table '{Path(source).name}' must have a column '{name}', but it has {known}"
            )


def _unreadable(path: Path, error: Exception) -> ExperienceError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ExperienceError(f"'{path}' cannot be read as a table: {reason}")
