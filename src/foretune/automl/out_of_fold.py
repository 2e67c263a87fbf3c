"""Files of out-of-fold predictions: trials write them, and the choice of a blend reads them."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune._base.files import replace_file
from foretune.automl.evaluation import Protocol
from foretune.tables import Table, fingerprint


def save_predictions(folder: Path, config: Mapping[str, Any], predictions: Floats) -> None:
    """Write the predictions of a configuration, in one step."""
    rounded = predictions.astype(prediction_dtype(predictions.shape[1]))

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.save(file, rounded, allow_pickle=False)

    replace_file(predictions_path(folder, config), write, is_private=True)


def load_predictions(
    folder: Path, config: Mapping[str, Any], shape: tuple[int, int]
) -> Floats | None:
    """Return the predictions of a configuration; None if they are missing, damaged or infinite."""
    try:
        # Probabilities stay in single precision, because they may be large; sums are double.
        found: Floats = np.load(predictions_path(folder, config), allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    is_whole = found.shape == shape and found.dtype.kind == "f"
    return found if is_whole and np.isfinite(found).all() else None


def prediction_dtype(columns: int) -> np.dtype[np.floating[Any]]:
    """Return the type in which predictions are saved.

    Single precision is enough for probabilities. Numbers, which have one column, are saved in
    double precision, because they may have a large offset.
    """
    return np.dtype(np.float32 if columns > 1 else np.float64)


def predictions_path(folder: Path, config: Mapping[str, Any]) -> Path:
    """Return the file of a configuration's predictions."""
    text = repr(sorted((name, repr(value)) for name, value in config.items()))
    return folder / f"{sha256(text.encode()).hexdigest()[:24]}.npy"


def evaluation_fingerprint(table: Table, protocol: Protocol) -> str:
    """Return a fingerprint of the rows and splits, which decide what a configuration predicts.

    The same configurations are tried on many tables, and for several targets of one.
    """
    splits = [protocol.folds, protocol.cross_validated_below, protocol.seed]
    return sha256(json.dumps([fingerprint(table), *splits]).encode()).hexdigest()[:16]
