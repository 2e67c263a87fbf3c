"""Writes and reads model files: a skops archive of pipelines with a JSON header.

Linear models are in the header, so a file without other pipelines needs no skops.

A file is checked before any object is made of it: its size when unpacked, the names of its
entries, the JSON, and the types of all objects. Nothing is unpickled or unpacked to disk.
"""

import io
import json
import re
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from foretune._base.files import replace_file
from foretune._base.names import quote_names
from foretune.automl.final_model.boosters import check_boosters, may_hold_boosters
from foretune.automl.final_model.packed_forest import pack_forests, unpack_forests
from foretune.automl.final_model.skops_library import load_skops
from foretune.automl.model_refusal import WRITTEN_BY_FIT, check_model_exists, refuse_model
from foretune.errors import UsageError

ENTRY = "foretune.json"
DESCRIPTION = "schema.json"
"""The entry in which skops describes the objects of an archive."""
KIND = "foretune model"
VERSION = 2
"""A file that has pipelines only, as all files before, has version 1."""
LINEAR = "linear"
"""The part of a member in the header that holds a linear model."""
SMALLER = "blend fewer pipelines, or choose other estimators"
OLDEST_PROTOCOL = 2
"""The oldest protocol of skops that is accepted; earlier ones make skops run code for old files."""
MOST_TIMES = 100
"""An unpacked file may be at most this many times larger; model files reach 32 times."""
SMALL, SMALL_TEXT = 2**25, 2**23
"""A file, and its JSON, may always have this many bytes when unpacked."""
BYTES_AN_ELEMENT, FEW_ELEMENTS = 2, 500_000
"""A file has at least this many bytes for each list, object and comma in its JSON, because each
takes time and memory. Model files have 4 or more. A few elements are always accepted.
"""
SHARE_OF_PIPELINES = 15 / 16
"""The share of a file that pipelines may fill; the rest is for the header."""
COMPRESSION_LEVEL = 1
"""The quickest: a file is a tenth larger than with the usual level, and written in a third of the
time."""
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
MOVED_MODULES = {
    "foretune.automl.discriminant": "foretune.automl.estimators.discriminant",
    "foretune.automl.tables.text_encoder": "foretune.tables.text_encoder",
}
"""The modules of classes in files of version 0.1, and where these classes are now."""
_ARRAY = re.compile(r"[0-9a-f-]{1,36}\.(npy|bin)")
PACKAGES = ("scikit-learn", "numpy", "lightgbm", "xgboost", "xgboost-cpu", "catboost")
"""The packages whose versions change what a fitted pipeline means."""


class TooLargeError(UsageError):
    """A pipeline is too large for a model file."""


class UnknownFormatError(UsageError):
    """The library of a pipeline writes a format that this Foretune does not read."""


class Size(NamedTuple):
    """The unpacked size of a pipeline or a model file, in bytes."""

    text: float
    """The size of the JSON that describes it."""
    whole: float


LARGEST = Size(2**29, 2**32)
"""The most bytes that a model file may have: in one JSON entry, and in all entries."""


def size_in_file(pipeline: Any) -> Size:
    """Return the size of a pipeline in a model file; refuse one that could not be opened again."""
    # The archive goes to a file on disk, because skops already has all of it in memory.
    with tempfile.TemporaryFile() as content:
        load_skops().dump(pack_forests([pipeline]), content)
        with zipfile.ZipFile(content) as archive:
            sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
            _check_opens_again(archive)
    return Size(sizes[DESCRIPTION], sum(sizes.values()))


def _check_opens_again(archive: zipfile.ZipFile) -> None:
    """Refuse boosters now that reading the file would refuse later."""
    text = archive.read(DESCRIPTION)
    if not may_hold_boosters(text):
        return
    try:
        check_boosters(json.loads(text), archive.read)
    except ValueError as error:
        raise UnknownFormatError(
            f"a saved model must be one that can be opened again, but this could not ({error}): "
            "use the version of its library that Foretune was tested with, or other estimators"
        ) from error


class Room:
    """The room in a model file; pipelines take it one after the other."""

    def __init__(self, largest_file: float = LARGEST.whole) -> None:
        self._largest = largest_file
        self._taken = Size(0, 0)

    def take(self, size: Size) -> None:
        """Take the room of a pipeline; refuse one that is too large beside the earlier ones."""
        text, whole = self._taken.text + size.text, self._taken.whole + size.whole
        if max(text / LARGEST.text, whole / self._largest) > SHARE_OF_PIPELINES:
            raise TooLargeError("too large for a model file")
        self._taken = Size(text, whole)


def write_model(
    path: Path, about: Mapping[str, Any], pipelines: Sequence[Any], *, is_private: bool = False
) -> None:
    """Write a model file in one step; `about` must be JSON.

    pipelines: those of the members that have no linear model in `about`.
    is_private: it is a part of a fit, which only the owner may read, and which is written quickly.
    """
    has_linear = any(LINEAR in member for member in about.get("members", ()))
    version = VERSION if has_linear else VERSION - 1
    header = {"kind": KIND, "version": version, "packages": _packages(), "model": dict(about)}
    try:
        text = json.dumps(header, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the description in a model file must be JSON, but this is not ({error}): use "
            "finite numbers, strings, lists and dictionaries",
            rule="header-not-json",
        ) from error
    usual = zipfile.ZIP_STORED if is_private else zipfile.ZIP_DEFLATED
    content = _archive(text, pipelines, usual)
    if _expands_too_much(_entries(content), len(content.getbuffer())):
        content = _archive(text, pipelines, zipfile.ZIP_STORED)
    _check_entries(path, _entries(content), len(content.getbuffer()), LARGEST)
    if pipelines:
        with zipfile.ZipFile(content) as archive:
            _check_opens_again(archive)
    replace_file(path, lambda temporary: _write(temporary, content), is_private=is_private)


def read_model(path: Path, largest: Size = LARGEST) -> tuple[dict[str, Any], list[Any]]:
    """Read a file that `write_model` has written, and refuse any other file."""
    content = _content(path, largest)
    header = _header(path, content)
    if not _has_pipelines(content):
        return header["model"], []
    from foretune.automl.final_model.trusted_types import TYPES, check_indices

    skops = load_skops()
    content = _checked_pipelines(path, content)
    try:
        pipelines = skops.load(io.BytesIO(content), trusted=sorted(TYPES))
        if not isinstance(pipelines, list):
            raise TypeError("it holds no list of pipelines")
        pipelines = unpack_forests(pipelines)
        check_indices(pipelines)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        refuse_model(path, f"needs the package '{package}', which is not installed", "install it")
    except Exception as error:
        # Each type of object fails in its own way when the file holds the wrong content.
        said = " ".join(str(error).split()) or type(error).__name__
        refuse_model(path, f"cannot be read ({said[:200]}){_differences(header)}", "fit it again")
    return header["model"], pipelines


def read_header(path: Path) -> dict[str, Any]:
    """Read the `about` of a model file; no pipeline is loaded."""
    content = path.read_bytes()
    _check_archive(path, content, LARGEST)
    model: dict[str, Any] = _header(path, content)["model"]
    return model


def _archive(text: str, pipelines: Sequence[Any], compression: int) -> io.BytesIO:
    content = io.BytesIO()
    if pipelines:
        load_skops().dump(
            pack_forests(list(pipelines)),
            content,
            compression=compression,
            compresslevel=COMPRESSION_LEVEL,
        )
    with zipfile.ZipFile(content, "a", compression=compression) as archive:
        archive.writestr(ENTRY, text)
    return content


def _check_archive(path: Path, content: bytes, largest: Size) -> None:
    try:
        entries = _entries(io.BytesIO(content))
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError):
        # NotImplementedError means a version of the ZIP format that Python does not read.
        refuse_model(path, "is not one, or is damaged", WRITTEN_BY_FIT)
    _check_entries(path, entries, len(content), largest)


def _entries(content: io.BytesIO) -> list[zipfile.ZipInfo]:
    with zipfile.ZipFile(content) as archive:
        return archive.infolist()


def _write(path: Path, content: io.BytesIO) -> None:
    path.write_bytes(content.getbuffer())


def _content(path: Path, largest: Size) -> bytes:
    """Return the bytes of an archive after checking its size and entries."""
    check_model_exists(path)
    if path.stat().st_size > largest.whole:
        refuse_model(path, "is larger than a model can be", "name another file")
    content = path.read_bytes()
    _check_archive(path, content, largest)
    return content


def _has_pipelines(content: bytes) -> bool:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.namelist() != [ENTRY]


def _checked_pipelines(path: Path, content: bytes) -> bytes:
    """Return the bytes of an archive after checking the types of its pipelines."""
    from foretune.automl.final_model.trusted_types import strangers

    content = _with_current_modules(content, path)
    description = _entry(path, content, DESCRIPTION)
    found = strangers(description)
    if found:
        refuse_model(
            path, f"holds {quote_names(found)}, which no model needs", "do not use this file"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_boosters(description, archive.read)
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        refuse_model(path, f"is damaged ({error})", "fit it again")
    protocol = description.get("protocol") if isinstance(description, dict) else None
    if not isinstance(protocol, int) or protocol < OLDEST_PROTOCOL:
        refuse_model(path, "is written in a way that no model is", "do not use this file")
    return content


def _with_current_modules(content: bytes, path: Path) -> bytes:
    """Replace the module names of earlier versions by those of today."""
    description = json.dumps(_entry(path, content, DESCRIPTION))
    current = description
    for before, now in MOVED_MODULES.items():
        current = current.replace(f'"__module__": "{before}"', f'"__module__": "{now}"')
    if current == description:
        return content
    moved = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(moved, "w") as new:
        for name in old.namelist():
            new.writestr(name, current if name == DESCRIPTION else old.read(name))
    return moved.getvalue()


def _check_entries(
    path: Path, entries: Sequence[zipfile.ZipInfo], packed: int, largest: Size
) -> None:
    names = [entry.filename for entry in entries]
    odd = [
        name for name in names if name not in (ENTRY, DESCRIPTION) and not _ARRAY.fullmatch(name)
    ]
    if odd or len(set(names)) < len(names):
        refuse_model(
            path, f"has entries that no model has ({quote_names(odd or names)})", "do not use it"
        )
    sizes = {entry.filename: entry.file_size for entry in entries}
    texts = max(sizes.get(ENTRY, 0), sizes.get(DESCRIPTION, 0))
    if texts > largest.text or sum(sizes.values()) > largest.whole:
        refuse_model(path, "is larger, when unpacked, than a model may be", SMALLER)
    if _expands_too_much(entries, packed):
        refuse_model(
            path,
            f"has more than {MOST_TIMES} times its size when unpacked, as no model has",
            "do not use this file",
        )


def _expands_too_much(entries: Sequence[zipfile.ZipInfo], packed: int) -> bool:
    """Return whether a small file would take very much memory, for all entries or its JSON."""
    whole = sum(entry.file_size for entry in entries)
    texts = sum(entry.file_size for entry in entries if entry.filename in (ENTRY, DESCRIPTION))
    return whole > max(SMALL, MOST_TIMES * packed) or texts > max(SMALL_TEXT, MOST_TIMES * packed)


def _header(path: Path, content: bytes) -> dict[str, Any]:
    header = _entry(path, content, ENTRY)
    types = {"kind": str, "version": int, "packages": dict, "model": dict}
    if not isinstance(header, dict) or {n: type(v) for n, v in header.items()} != types:
        refuse_model(path, "has no name of its format", WRITTEN_BY_FIT)
    if header["kind"] != KIND:
        refuse_model(path, f"says that it is '{header['kind']}'", WRITTEN_BY_FIT)
    made = header["version"]
    if not 1 <= made <= VERSION:
        refuse_model(
            path, f"has version {made}, and this Foretune reads up to {VERSION}", "update it"
        )
    return header


def _entry(path: Path, content: bytes, name: str) -> Any:
    """Return the JSON in an entry; refuse NaN and infinity, which JSON does not have."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            text = archive.read(name)
        is_small = _elements(text) <= max(FEW_ELEMENTS, len(content) // BYTES_AN_ELEMENT)
        document = json.loads(text, parse_constant=_no_constant) if is_small else None
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, RuntimeError):
        # RuntimeError means too deep a recursion, a password or an unknown compression.
        refuse_model(path, "is not one, or is damaged", WRITTEN_BY_FIT)
    if not is_small:
        refuse_model(
            path, "has more parts than a file of its size can need", "do not use this file"
        )
    return document


def _elements(text: bytes) -> int:
    """Count the lists, objects and commas of a JSON text outside of its strings."""
    bare = _STRING.sub(b"", text)
    return sum(bare.count(mark) for mark in (b"{", b"[", b","))


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
    """Return the end of a sentence that names packages that have changed since the writing."""
    here = _packages()
    others = [
        f"{name} {made} instead of {here.get(name, 'none')}"
        for name, made in header["packages"].items()
        if here.get(name) != made
    ]
    return f"; it was written with {', '.join(others)}" if others else ""
