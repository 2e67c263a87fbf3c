"""Saved priors: one safetensors file that holds arrays and a description, and nothing executable.

The header's metadata has one entry, a JSON object {kind, version, meta, sha256}; the checksum
covers the other three and every array. A file is read in full and refused if any part is wrong.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as parse_safetensors
from safetensors.numpy import save as to_safetensors

from foretune._base.files import replace_file
from foretune.errors import ArtifactError

ENTRY = "foretune"
LARGEST_HEADER = 64 * 2**20
DTYPES = frozenset(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)) | {
    "bool",
    "float32",
    "float64",
}


def save_artifact(
    path: Path,
    *,
    kind: str,
    version: int,
    meta: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write arrays and a JSON-like description to one file, atomically.

    `kind` and `version` name the meaning of the file. `load_artifact` asks for them again.
    """
    path = Path(path)
    arrays = {name: np.array(array, order="C") for name, array in arrays.items()}
    _check_arrays(path, arrays)
    try:
        description = _canonical({"kind": kind, "version": version, "meta": dict(meta)})
    except (TypeError, ValueError) as error:
        raise ArtifactError(
            f"The description of an artifact must be JSON, but that of '{path}' is not ({error}): "
            "use finite numbers, strings, lists and dictionaries",
            rule="artifact-description",
        ) from error
    signed = {**json.loads(description), "sha256": _checksum(description, arrays)}
    _write(path, to_safetensors(arrays, metadata={ENTRY: _canonical(signed)}))


def load_artifact(
    path: Path, *, kind: str, newest_version: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description and arrays of a file that `save_artifact` wrote, or refuse it."""
    path = Path(path)
    content = _read(path)
    described = _description(path, content)
    if described["kind"] != kind:
        what = f"holds '{described['kind']}', where '{kind}' was expected"
        _refuse(path, what, "name another", rule="artifact-kind", value=described["kind"])
    if not 1 <= described["version"] <= newest_version:
        _refuse(
            path,
            f"has version {described['version']}, and this Foretune reads up to {newest_version}",
            "update Foretune",
            rule="artifact-version",
            value=described["version"],
        )
    try:
        arrays = parse_safetensors(content)
    except (SafetensorError, KeyError, TypeError, ValueError, OverflowError, MemoryError):
        _refuse(path, "is damaged or cut short", "copy or learn it again", rule="artifact-damaged")
    signature = described.pop("sha256")
    if _checksum(_canonical(described), arrays) != signature:
        _refuse(
            path,
            "does not match its own checksum",
            "copy or learn it again",
            rule="artifact-checksum",
        )
    _check_arrays(path, arrays)
    _check_rows(path, arrays, len(content))
    return described["meta"], arrays


def _read(path: Path) -> bytes:
    if path.is_dir():
        _refuse(path, "is a directory", "name a file in it", rule="artifact-is-folder")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        _refuse(
            path, "does not exist", "learn a prior and save it there first", rule="artifact-missing"
        )
    except (OSError, ValueError) as error:
        _refuse(
            path, f"cannot be read ({error})", "check its permissions", rule="artifact-unreadable"
        )


def _description(path: Path, content: bytes) -> dict[str, Any]:
    """Return the JSON object of the header, with all entries of the right type."""
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(len(content) - 8, LARGEST_HEADER):
        _refuse(
            path,
            "is no artifact, or is cut short",
            "name a file saved by Foretune",
            rule="artifact-damaged",
        )
    try:
        header = json.loads(content[8 : 8 + length])
        described: dict[str, Any] = json.loads(header["__metadata__"][ENTRY])
        types = {name: type(value) for name, value in described.items()}
        _canonical(described)  # fails for numbers that are not finite
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        _refuse(
            path,
            "is no artifact of Foretune",
            "name a file saved by Foretune",
            rule="artifact-damaged",
        )
    if types != {"kind": str, "version": int, "meta": dict, "sha256": str}:
        _refuse(
            path,
            "has a description that is not Foretune's",
            "copy or learn it again",
            rule="artifact-damaged",
        )
    return described


def _check_rows(path: Path, arrays: Mapping[str, NDArray[Any]], size: int) -> None:
    """Refuse rows without columns: they take no bytes in a file, but much memory when used."""
    for name, array in arrays.items():
        if any(side > size for side in array.shape):
            _refuse(
                path,
                f"has more rows in '{name}' than bytes",
                "do not use this file",
                rule="inflated-array",
                value=name,
            )


def _check_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    for name, array in arrays.items():
        if array.dtype.name not in DTYPES:
            _refuse(
                path,
                f"would hold '{name}' of type {array.dtype}",
                "use plain numbers",
                rule="artifact-dtype",
                value=name,
            )
        if not np.isfinite(array).all():
            _refuse(
                path,
                f"has NaN or infinity in '{name}'",
                "learn it again from finite data",
                rule="artifact-not-finite",
                value=name,
            )


def _checksum(description: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(description.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(_canonical([name, array.dtype.str, list(array.shape)]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _canonical(value: object) -> str:
    """Return the JSON text of a value. Equal descriptions have equal texts and checksums."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _write(path: Path, content: bytes) -> None:
    """Replace the file in one step: after a crash it has the old content or the new one."""

    def fill(temporary: Path) -> None:
        temporary.write_bytes(content)

    try:
        replace_file(path, fill)
    except OSError as error:
        _refuse(
            path,
            f"cannot be written ({error.strerror})",
            "name a folder and a file that can",
            rule="artifact-unwritable",
        )


def _refuse(path: Path, what: str, remedy: str, *, rule: str, value: object = None) -> NoReturn:
    raise ArtifactError(f"The artifact '{path}' {what}: {remedy}", rule=rule, value=value) from None
