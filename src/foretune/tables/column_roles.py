"""What the user says columns are for, beside the target."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foretune._base.names import suggestion
from foretune.errors import UsageError
from foretune.tables.formats.first_look import check_is_file, header_of

if TYPE_CHECKING:
    # Roles are checked before pandas is imported.
    import pandas as pd

    from foretune._base.arrays import Bools
    from foretune.tables.number_formats import TableMark
    from foretune.tables.row_structure import RowStructure
    from foretune.tables.row_weights import RowWeights


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """Columns that are not only features."""

    group: str | None = None
    """Rows with equal values belong together. The column is no feature, because new rows have new
    values."""
    order: str | None = None
    """Numbers or dates that give the order of the rows. The column is a feature, too."""
    ignored: tuple[str, ...] = ()
    """Columns that are no features."""
    weight: str | None = None
    """How much rows count. The column is no feature, and rows of weight 0 are left out."""

    def check(self, columns: Sequence[str], target: str) -> None:
        """Refuse columns that do not exist, or that have two roles."""
        if self.group is not None and self.order is not None:
            raise UsageError(
                "rows are kept together or scored in their order, but got both a column of groups "
                f"('{self.group}') and one of the order ('{self.order}'): leave one of them out",
                rule="group-or-order",
                value=(self.group, self.order),
            )
        named = {"group": self.group, "order": self.order, "weight": self.weight}
        if self.weight is not None and self.weight in (self.group, self.order):
            raise UsageError(
                "the weights of rows must be in a column of their own, but got "
                f"'{self.weight}' for another role as well: choose another column",
                rule="weight-has-another-role",
                field=self.weight,
            )
        asked = {name: role for role, name in named.items() if name is not None}
        for name in (*asked, *self.ignored):
            role = asked.get(name, "ignored")
            if name not in columns:
                raise UsageError(
                    f"the {role} column must be in the table, but there is no '{name}': "
                    f"{suggestion(name, columns)}",
                    rule="unknown-column",
                    field=name,
                    value=role,
                )
            if name == target:
                raise UsageError(
                    f"the {role} column must be another one than the target, but got '{name}' for "
                    "both: choose another column",
                    rule="target-has-another-role",
                    field=name,
                    value=role,
                )

    def excluded_columns(self) -> list[str]:
        """Return the columns that are no features."""
        roles = [name for name in (self.group, self.weight) if name is not None]
        return list(dict.fromkeys((*roles, *self.ignored)))

    def drop_weightless_rows(self, frame: "pd.DataFrame", target: str) -> "pd.DataFrame":
        """Drop the rows of weight 0. Rows without a target need no weight and stay."""
        from foretune.tables.number_formats import table_mark

        known = frame[target].notna().to_numpy()
        if self.weight is None or not known.any():
            return frame
        return frame[self.find_weighted_rows(frame, known, table_mark(frame)) | ~known]

    def find_weighted_rows(
        self, frame: "pd.DataFrame", known: "Bools", mark: "TableMark"
    ) -> "Bools":
        """Return (n,), which of the `known` (n,) rows have a weight above 0."""
        if self.weight is None:
            return known
        from foretune.tables.row_weights import weights_in

        weights = weights_in(self.weight, frame[self.weight][known], mark)
        counting = known.copy()
        counting[known] = weights > 0.0
        return counting

    def read_weights(
        self, frame: "pd.DataFrame", known: "Bools", mark: "TableMark"
    ) -> "RowWeights | None":
        """Return how much the known rows count; None if all count alike."""
        if self.weight is None:
            return None
        from foretune.tables.row_weights import RowWeights

        return RowWeights.of(self.weight, frame[self.weight][known], mark)

    def read_structure(
        self, frame: "pd.DataFrame", known: "Bools", mark: "TableMark"
    ) -> "RowStructure | None":
        """Return how the known rows belong together or follow each other.

        known: (n,), which rows these are.
        mark: how the table writes numbers that can be read in two ways.
        """
        from foretune.tables.row_structure import RowStructure

        if self.group is not None:
            return RowStructure.together(self.group, frame[self.group][known])
        if self.order is not None:
            return RowStructure.in_order(self.order, frame[self.order], mark, known)
        return None


def check_target_exists(columns: Sequence[str], target: str) -> None:
    """Refuse a target that the table does not have."""
    if target not in columns:
        raise UsageError(
            f"the target must be a column of the table, but there is no '{target}': "
            f"{suggestion(target, columns)}",
            rule="unknown-column",
            field=target,
        )


def check_before_reading(path: Path, target: str, roles: ColumnRoles) -> None:
    """Refuse a file or a column that does not exist, without a library that takes time to load."""
    check_is_file(path)
    columns = header_of(path)
    if columns is not None:
        check_target_exists(columns, target)
        roles.check(columns, target)
