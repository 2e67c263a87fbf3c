"""A space as a table for people."""

from collections.abc import Sequence

from foretune.space.definition import Definition
from foretune.space.parameters import Parameter

HEADER = ("name", "kind", "allowed", "default", "active if")


def describe(definition: Definition, parameters: Sequence[Parameter]) -> str:
    """Return one line for each hyperparameter, then one for each forbidden clause."""
    conditions = {
        condition.child.name: str(condition).replace(f"{condition.child.name} | ", "")
        for condition in definition.conditions
    }
    rows = [
        (p.name, str(p.kind), p.allowed_text, repr(p.default), conditions.get(p.name, ""))
        for p in parameters
    ]
    widths = [max(len(row[i]) for row in (HEADER, *rows)) for i in range(len(HEADER))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (HEADER, *rows)
    ]
    lines.insert(1, "-" * len(max(lines, key=len)))
    return "\n".join([*lines, *(str(clause) for clause in definition.forbidden_clauses)])
