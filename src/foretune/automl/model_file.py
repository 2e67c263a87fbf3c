"""Model files: a skops archive with the fitted pipelines, and a JSON text that says what they are.

A file is looked at before anything is made of it: its size when unpacked, the names in it, the
JSON, the types of all objects. None of it is ever unpickled, and nothing is unpacked to the disk.
"""

import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

from foretune.automl.model_trust import TYPES, check_indices, strangers
from foretune.errors import MissingExtraError, UsageError
from foretune.experience.atomic import replace_file
from foretune.experience.naming import listed

ENTRY = "foretune.json"
DESCRIPTION = "schema.json"
"""Where skops describes the objects of an archive."""
KIND = "foretune model"
VERSION = 1
OLDEST_PROTOCOL = 2
"""Of skops; what it does with files of earlier ones is for its own old files."""
LARGEST_ENTRY = 2**31
LARGEST_FILE = 2**32
"""Bytes when unpacked, of all entries."""
_ARRAY = re.compile(r"[0-9a-f-]{1,36}\.(npy|bin)")
PACKAGES = ("scikit-learn", "numpy", "lightgbm", "xgboost", "xgboost-cpu", "catboost")
"""Those on whose version the meaning of a fitted pipeline depends."""


def write_model(path: Path, about: Mapping[str, Any], pipelines: Sequence[Any]) -> None:
    """Write a model in one step; `about` must be JSON."""
    skops = _skops()
    header = {"kind": KIND, "version": VERSION, "packages": _packages(), "model": dict(about)}
    try:
        text = json.dumps(header, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"what a model file says about itself must be JSON, but this is not ({error}): use "
            "finite numbers, strings, lists and dictionaries"
        ) from error
    content = io.BytesIO()
    skops.dump(list(pipelines), content, compression=zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(content, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(ENTRY, text)
    replace_file(path, lambda temporary: _write(temporary, content))


def read_model(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """What `write_model` was given; anything else is refused."""
    skops = _skops()
    content = _content(path)
    header = _header(path, content)
    try:
        pipelines = skops.load(io.BytesIO(content), trusted=sorted(TYPES))
        if not isinstance(pipelines, list):
            raise TypeError("it holds no list of pipelines")
        check_indices(pipelines)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        _refuse(path, f"needs the package '{package}', which is not installed", "install it")
    except Exception as error:
        # Objects are filled with what the file holds, and fail in as many ways as there are types.
        said = " ".join(str(error).split()) or type(error).__name__
        _refuse(path, f"cannot be read ({said[:200]}){_differences(header)}", "fit it again")
    return header["model"], pipelines


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingExtraError("skops", "automl", "a model file") from error
    return skops.io


def _write(path: Path, content: io.BytesIO) -> None:
    path.write_bytes(content.getbuffer())


def _content(path: Path) -> bytes:
    """The bytes of an archive that is not larger than it may be and holds nothing strange."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        _refuse(path, what, "name a file that  foretune fit  has written")
    if path.stat().st_size > LARGEST_FILE:
        _refuse(path, "is larger than a model can be", "name another file")
    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_entries(path, archive.infolist())
            description = _json(archive.read(DESCRIPTION))
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, NotImplementedError, RuntimeError):
        # RuntimeError: also too deep a recursion, and archives with a password.
        _refuse(path, "is not one, or is damaged", "name a file that  foretune fit  has written")
    found = strangers(description)
    if found:
        _refuse(path, f"holds {listed(found)}, which no model needs", "do not use this file")
    protocol = description.get("protocol") if isinstance(description, dict) else None
    if not isinstance(protocol, int) or protocol < OLDEST_PROTOCOL:
        _refuse(path, "is written in a way that no model is", "do not use this file")
    return content


def _check_entries(path: Path, entries: Sequence[zipfile.ZipInfo]) -> None:
    names = [entry.filename for entry in entries]
    odd = [
        name for name in names if name not in (ENTRY, DESCRIPTION) and not _ARRAY.fullmatch(name)
    ]
    if odd or len(set(names)) < len(names):
        _refuse(path, f"has entries that no model has ({listed(odd or names)})", "do not use it")
    sizes = [entry.file_size for entry in entries]
    if max(sizes, default=0) > LARGEST_ENTRY or sum(sizes) > LARGEST_FILE:
        _refuse(path, "is larger, when unpacked, than a model can be", "do not use this file")


def _header(path: Path, content: bytes) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            header = _json(archive.read(ENTRY))
        kind, made, packages = header["kind"], header["version"], header["packages"]
    except (zipfile.BadZipFile, LookupError, TypeError, ValueError, RecursionError):
        _refuse(path, "does not say what it is", "name a file that  foretune fit  has written")
    if kind != KIND or not isinstance(header.get("model"), dict) or not isinstance(packages, dict):
        _refuse(path, "does not say that it is one", "name another file")
    if not isinstance(made, int) or not 1 <= made <= VERSION:
        _refuse(path, f"has version {made!r}, and this Foretune reads up to {VERSION}", "update it")
    return dict(header)


def _json(text: bytes) -> Any:
    """JSON without NaN and infinity, which it does not have."""
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _differences(header: Mapping[str, Any]) -> str:
    """Which packages have changed since the file was written, as part of a sentence."""
    here = _packages()
    others = [
        f"{name} {made} instead of {here.get(name, 'none')}"
        for name, made in header["packages"].items()
        if here.get(name) != made
    ]
    return f"; it was written with {', '.join(others)}" if others else ""


def _refuse(path: Path, what: str, remedy: str) -> NoReturn:
    raise UsageError(f"a model must be a file saved by Foretune, but '{path}' {what}: {remedy}")
