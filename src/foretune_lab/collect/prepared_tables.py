"""Tables as files that worker processes open, and notes about each."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from foretune.plugins import Progress, write_text
from foretune.tables import Table, description, fingerprint
from foretune_lab.collect.table_sources import TableSource
from foretune_lab.collect.table_trial import table_path


@dataclass(frozen=True, slots=True)
class PreparedTable:
    """The facts about a table that are kept beside its evaluations."""

    task: str
    family: str
    rows: int
    columns: int
    meta_features: dict[str, float]
    fingerprint: str = ""
    """The fingerprint of its rows and its target; notes of earlier versions have none."""
    version: str = ""
    """The version of the source that it was read from."""


def prepare(
    sources: Sequence[TableSource], folder: Path, *, most_rows: int, seed: int, progress: Progress
) -> list[PreparedTable]:
    """Save every source that is new or has changed, with at most this number of rows."""
    known = []
    progress.start("preparing tables", len(sources))
    for source in sources:
        path = table_path(folder, source.name)
        note = path.with_suffix(".json")
        found = _read_note(note)
        if found is None or found.version != source.version:
            table = source.load().sample(most_rows, seed=seed)
            # A note is never beside a table that it does not describe.
            note.unlink(missing_ok=True)
            table.save(path)
            found = _describe_table(source, table)
            write_text(note, json.dumps(asdict(found)))
        known.append(found)
        progress.step(note=source.name)
    progress.stop()
    return known


def _read_note(note: Path) -> PreparedTable | None:
    return PreparedTable(**json.loads(note.read_text(encoding="utf-8"))) if note.exists() else None


def _describe_table(source: TableSource, table: Table) -> PreparedTable:
    return PreparedTable(
        source.name,
        source.family,
        len(table),
        table.x.shape[1],
        description(table),
        fingerprint(table),
        source.version,
    )
