"""Reading configurations as people write them, column by column, into exact numbers.

Every error names the hyperparameter, the value, the allowed range, and the row.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import Any, NoReturn, TypeAlias

import numpy as np

from foretune._base.arrays import Bools, Floats
from foretune.errors import SpaceError
from foretune.space.conditions import Rules
from foretune.space.parameters import Kind, Parameter, choice_key

ABSENT = float("nan")
"""The cell of a name that a configuration does not hold (None may be a choice).

Its identity distinguishes it from a NaN that a user gives. It is a float, so NumPy stays fast.
"""

Part: TypeAlias = tuple[int, int]
"""The first row of a part within the whole, and the number of rows of the whole."""
LARGEST_FLOAT = int(np.finfo(np.float64).max)

PLAIN_NUMBERS = frozenset({float, int, type(None), np.float64, np.int64})
"""Types that NumPy converts correctly; cells of other types are converted one by one."""


def read_configs(parameters: Sequence[Parameter], configs: Sequence[Mapping[str, Any]]) -> Floats:
    """Return (n, H) numbers of `configs`, NaN where a name is absent or None."""
    rows = [c if type(c) is dict else _as_dict(c, i, len(configs)) for i, c in enumerate(configs)]
    unknown = set().union(*rows) - {p.name for p in parameters}
    if unknown:
        _refuse_unknown(unknown, rows, parameters)
    values = np.full((len(rows), len(parameters)), np.nan, order="F")
    for column, parameter in enumerate(parameters):
        name = parameter.name
        values[:, column] = read_column(parameter, [row.get(name, ABSENT) for row in rows])
    return values


def read_columns(
    parameters: Sequence[Parameter], columns: Mapping[str, Collection[Any]], n: int
) -> Floats:
    """Return (n, H) numbers of `columns`, NaN where a cell or a column is missing.

    If None is one of the choices, an empty cell means that choice.
    """
    unknown = set(columns) - {p.name for p in parameters}
    if unknown:
        _refuse_unknown(unknown, [], parameters)
    values = np.full((n, len(parameters)), np.nan, order="F")
    for column, parameter in enumerate(parameters):
        cells = columns.get(parameter.name)
        if cells is None:
            continue
        if len(cells) != n:
            raise SpaceError(
                f"column '{parameter.name}' must have {n} cells like the others, but has "
                f"{len(cells)}: give one value (or None) for each configuration",
                rule="wrong-column-length",
                field=parameter.name,
                value=len(cells),
            )
        empty = None if _has_none(parameter) else ABSENT
        values[:, column] = read_column(parameter, _with_gaps(cells, empty))
    return values


def read_column(parameter: Parameter, cells: list[Any]) -> Floats:
    """Return (n,) numbers of one column; refuse any value that is not legal."""
    if parameter.is_number:
        column = _read_numbers(parameter, cells)
        check_range(parameter, column)
        return column
    return _read_choices(parameter, cells)


def _has_none(parameter: Parameter) -> bool:
    return any(choice is None for choice in parameter.choices)


def _read_numbers(parameter: Parameter, cells: list[Any]) -> Floats:
    if not set(map(type, cells)) <= PLAIN_NUMBERS:
        cells = [_number(parameter, cell, row, len(cells)) for row, cell in enumerate(cells)]
    try:
        column = np.array(cells, dtype=np.float64)
    except OverflowError:
        row = next(i for i, c in enumerate(cells) if isinstance(c, int) and abs(c) > LARGEST_FLOAT)
        _refuse_value(parameter, cells[row], row, len(cells))
    gaps = np.flatnonzero(np.isnan(column))
    if len(gaps) != cells.count(ABSENT) + cells.count(None):
        row = next(int(g) for g in gaps if cells[g] is not ABSENT and cells[g] is not None)
        _refuse_value(parameter, cells[row], row, len(cells))
    return column


def _number(parameter: Parameter, cell: Any, row: int, n: int) -> float:
    if cell is None or cell is ABSENT:
        return ABSENT
    if isinstance(cell, np.ndarray) and cell.ndim == 0:
        cell = cell.item()
    if isinstance(cell, bool | np.bool_) or not isinstance(cell, Real):
        _refuse_value(parameter, cell, row, n)
    return cell if isinstance(cell, int) else float(cell)


def _read_choices(parameter: Parameter, cells: list[Any]) -> Floats:
    if _all_plain(parameter, cells):
        lookup: dict[Any, float] = {c: float(i) for i, c in enumerate(parameter.choices)}
        lookup |= {None: np.nan, ABSENT: np.nan}
        found = list(map(lookup.get, cells))
    else:
        found = _look_up_by_key(parameter, cells)
    if None in found:
        row = found.index(None)
        _refuse_value(parameter, cells[row], row, len(cells))
    return np.array(found, dtype=np.float64)


def _all_plain(parameter: Parameter, cells: list[Any]) -> bool:
    """Return whether all choices and cells are of one simple type, so that a dict finds them."""
    types = {type(choice) for choice in parameter.choices}
    if len(types) > 1 or not types <= {str, bool, int}:
        return False
    # Cells are counted by type and identity, because some cannot be compared.
    kinds = list(map(type, cells))
    absent = list(map(id, cells)).count(id(ABSENT))
    return kinds.count(*types) + kinds.count(type(None)) + absent == len(cells)


def _look_up_by_key(parameter: Parameter, cells: list[Any]) -> list[float | None]:
    """Look up any cells: True is not 1, but 1.0 and NumPy's 1 are."""
    by_key = {choice_key(c): float(i) for i, c in enumerate(parameter.choices)}
    by_key.setdefault(choice_key(None), np.nan)
    by_key[choice_key(ABSENT)] = np.nan
    found: list[float | None] = []
    for cell in cells:
        try:
            found.append(by_key.get(choice_key(cell)))
        except TypeError:  # an unhashable cell is no choice
            found.append(None)
    return found


def _with_gaps(cells: Collection[Any], empty: Any) -> list[Any]:
    """Return a list with `empty` in place of every None, NaN and missing value of pandas."""
    listed = cells.tolist() if hasattr(cells, "tolist") else list(cells)
    if hasattr(cells, "isna"):
        return [empty if gap else cell for cell, gap in zip(listed, cells.isna(), strict=True)]
    return [empty if cell is None or _is_nan(cell) else cell for cell in listed]


def _is_nan(cell: Any) -> bool:
    return isinstance(cell, float) and math.isnan(cell)


def check_range(parameter: Parameter, column: Floats) -> None:
    """Refuse numbers outside the range, and fractions of integers and indices."""
    with np.errstate(invalid="ignore"):
        bad = (column < parameter.low) | (column > parameter.high)
        if parameter.kind is not Kind.FLOAT:
            bad |= ~np.isnan(column) & (column != np.rint(column))
    if bad.any():
        row = int(np.argmax(bad))
        _refuse_value(parameter, column[row].item(), row, len(column))


def check_activity(
    parameters: Sequence[Parameter],
    rules: Rules,
    values: Floats,
    *,
    fill: bool,
    drop: bool,
    where: Part | None = None,
) -> Floats:
    """Check values against the conditions, parents first, and return them settled.

    fill: give missing active hyperparameters their defaults, instead of refusing them.
    drop: forget the values of inactive hyperparameters, instead of refusing them. None for an
        inactive name is always allowed.
    where: the part of all rows that these are, for messages.
    """
    checked = values.copy(order="K")
    for column, (parameter, condition) in enumerate(zip(parameters, rules.conditions, strict=True)):
        cells = checked[:, column]
        present = ~np.isnan(cells)
        active = np.ones(len(cells), dtype=bool) if condition is None else condition(checked)
        surplus = present & ~active
        if drop or (surplus.any() and _only_none(parameter, cells[surplus])):
            cells[surplus] = np.nan
        elif surplus.any():
            _refuse_inactive(parameter, cells, surplus, where or (0, len(cells)))
        missing = active & ~present
        if fill:
            cells[missing] = parameter.number_of(parameter.default)
        elif missing.any():
            _refuse_missing(parameter, missing, where or (0, len(cells)))
    return checked


def check_forbidden(
    parameters: Sequence[Parameter], rules: Rules, values: Floats, *, where: Part | None = None
) -> None:
    """Refuse settled rows that match a forbidden clause."""
    for clause in rules.forbidden_clauses:
        hit = clause.holds(values)
        if hit.any():
            row = int(np.argmax(hit))
            named = ", ".join(
                f"{parameters[i].name}={value_text(parameters[i], values[row, i].item())}"
                for i in clause.columns
                if not np.isnan(values[row, i])
            )
            raise SpaceError(
                f"the combination {clause.text} is forbidden, but got {named}"
                f"{_where_in(row, where or (0, len(values)))}: change one of them",
                rule="forbidden-combination",
                field=parameters[clause.columns[0]].name,
                value=named,
            )


def value_text(parameter: Parameter, number: float) -> str:
    """Return a number of the values matrix as the user would write it."""
    if parameter.is_number:
        return f"{int(number)}" if parameter.kind is Kind.INT else f"{number:g}"
    return repr(parameter.choices[int(number)])


def _only_none(parameter: Parameter, indices: Floats) -> bool:
    return _has_none(parameter) and all(parameter.choices[int(i)] is None for i in indices)


def _as_dict(config: Any, row: int, n: int) -> dict[str, Any]:
    if not isinstance(config, Mapping):
        raise SpaceError(
            f"a configuration must be a mapping of names to values, but got "
            f"{type(config).__name__} {config!r}{_where(row, n)}: pass a dict",
            rule="not-a-mapping",
            field="config",
            value=config,
        )
    return dict(config)


def check_value(parameter: Parameter, cell: Any, row: int, n: int) -> None:
    """Refuse a cell that is not legal; `row` is its row among n rows."""
    try:
        read_column(parameter, [cell])
    except SpaceError:
        number = parameter.is_number and isinstance(cell, int) and abs(cell) <= LARGEST_FLOAT
        _refuse_value(parameter, float(cell) if number and cell is not True else cell, row, n)


def _where_in(row: int, part: Part) -> str:
    first, n = part
    return _where(first + row, n)


def _where(row: int, n: int) -> str:
    return f" in row {row}" if n > 1 else ""


def _refuse_value(parameter: Parameter, cell: Any, row: int, n: int) -> NoReturn:
    noun = {Kind.FLOAT: "a number in", Kind.INT: "an integer in"}.get(parameter.kind, "one of")
    shown = f"{cell:g}" if type(cell) is float else repr(cell)
    raise SpaceError(
        f"hyperparameter '{parameter.name}' must be {noun} {parameter.allowed_text}, but got "
        f"{shown}{_where(row, n)}: change the value or the space",
        rule="illegal-value",
        field=parameter.name,
        value=cell,
    )


def _refuse_inactive(parameter: Parameter, cells: Floats, surplus: Bools, part: Part) -> NoReturn:
    row = int(np.argmax(surplus))
    raise SpaceError(
        f"hyperparameter '{parameter.name}' {parameter.allowed_text} must be left out where its "
        f"condition does not hold, but got {value_text(parameter, cells[row].item())}"
        f"{_where_in(row, part)}: drop it or change its parent",
        rule="inactive-value",
        field=parameter.name,
        value=cells[row].item(),
    )


def _refuse_missing(parameter: Parameter, missing: Bools, part: Part) -> NoReturn:
    row = int(np.argmax(missing))
    raise SpaceError(
        f"hyperparameter '{parameter.name}' is active and needs a value in "
        f"{parameter.allowed_text}, "
        f"but none was given{_where_in(row, part)}: add it, or ask for defaults",
        rule="value-missing",
        field=parameter.name,
    )


def _refuse_unknown(
    unknown: set[str], rows: Sequence[Mapping[str, Any]], parameters: Sequence[Parameter]
) -> NoReturn:
    name = min(unknown, key=str)
    row, value = next(((i, r[name]) for i, r in enumerate(rows) if name in r), (0, None))
    got = f"got {name!r}={value!r}{_where(row, len(rows))}" if rows else f"got a column {name!r}"
    known = ", ".join(p.name for p in parameters[:20]) + (", ..." if len(parameters) > 20 else "")
    raise SpaceError(
        f"every name must be a hyperparameter of the space ({known}), but {got}: "
        "correct the name or remove it",
        rule="unknown-hyperparameter",
        field=str(name),
        value=value,
    )
