"""The hyperparameters of a table, one column each."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from foretune._base.arrays import Bools
from foretune.errors import ExperienceError
from foretune.space import Space
from foretune.stores.files.cell_columns import ColumnCells


@dataclass(frozen=True)
class HyperparameterCells:
    """The hyperparameters of the rows that name all of them, and their space."""

    space: Space
    cells: dict[str, ColumnCells]
    rows: Bools
    """(number of rows of the table,), True for these rows."""


def check_not_in_use(names: Iterable[str], named: Collection[str]) -> None:
    """Refuse a hyperparameter with the name of a column that has another meaning."""
    for name in names:
        if name in named:
            raise ExperienceError(
                f"a hyperparameter may not bear the name of another column, but '{name}' is "
                "both: rename that column",
                rule="name-of-another-column",
                field=name,
            )
