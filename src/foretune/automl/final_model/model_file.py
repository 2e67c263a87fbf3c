"""Model files: a skops archive with the fitted pipelines, and a JSON text that says what they are.

A file is looked at before anything is made of it: its size when unpacked, the names in it, the
JSON, the types of all objects. None of it is ever unpickled, and nothing is unpacked to the disk.
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
from foretune.automl.final_model.trusted_types import TYPES, check_indices, strangers
from foretune.errors import MissingExtraError, UsageError

ENTRY = "foretune.json"
DESCRIPTION = "schema.json"
"""Where skops describes the objects of an archive."""
KIND = "foretune model"
VERSION = 1
WRITTEN_BY_FIT = "name a file that  foretune fit  has written"
SMALLER = "blend fewer pipelines, or choose other estimators"
OLDEST_PROTOCOL = 2
"""Of skops; what it does with files of earlier ones is for its own old files."""
LARGEST_TEXT = 2**29
LARGEST_FILE = 2**32
"""Bytes when unpacked, of an entry of JSON and of all entries."""
MOST_TIMES = 100
"""So many times its own size a file may have when unpacked; ours have up to 32 times."""
SMALL, SMALL_TEXT = 2**25, 2**23
"""What every file may have when unpacked, and its JSON, in bytes."""
BYTES_AN_ELEMENT, FEW_ELEMENTS = 2, 500_000
"""So many of its own bytes a file has at least for each list, object and comma in its JSON, which
take time and memory one by one. Ours have 4 or more; few elements are always taken.
"""
SHARE_OF_PIPELINES = 15 / 16
"""Of what a file may hold; the rest is for what it says about them."""
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
MOVED_MODULES = {
    "foretune.automl.discriminant": "foretune.automl.estimators.discriminant",
    "foretune.automl.tables.text_encoder": "foretune.tables.text_encoder",
}
"""Where classes lay that files of version 0.1 may hold, and where they lie now."""
_ARRAY = re.compile(r"[0-9a-f-]{1,36}\.(npy|bin)")
PACKAGES = ("scikit-learn", "numpy", "lightgbm", "xgboost", "xgboost-cpu", "catboost")
"""Those on whose version the meaning of a fitted pipeline depends."""


class TooLargeError(UsageError):
    """A pipeline that a model file has no room for."""


class UnknownFormatError(UsageError):
    """A pipeline whose library writes it in another way than this Foretune reads."""


class Size(NamedTuple):
    """What a pipeline takes in a model file, unpacked."""

    text: int
    """Bytes of its description."""
    whole: int


def size_in_file(pipeline: Any) -> Size:
    """What a model file would hold of a pipeline; refuses one that could not be opened again."""
    # On the disk: skops holds the whole archive in memory already.
    with tempfile.TemporaryFile() as content:
        _skops().dump([pipeline], content)
        with zipfile.ZipFile(content) as archive:
            sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
            _check_opens_again(archive)
    return Size(sizes[DESCRIPTION], sum(sizes.values()))


def _check_opens_again(archive: zipfile.ZipFile) -> None:
    """Refuse boosters that reading would refuse, while nothing is lost yet."""
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
    """What a model file has room for: pipelines are laid into it one after the other."""

    def __init__(self, largest_file: float | None = None) -> None:
        self._largest = LARGEST_FILE if largest_file is None else largest_file
        self._taken = Size(0, 0)

    def take(self, size: Size) -> None:
        """Refuse a pipeline that is too large beside those that were taken before."""
        text, whole = self._taken.text + size.text, self._taken.whole + size.whole
        if max(text / LARGEST_TEXT, whole / self._largest) > SHARE_OF_PIPELINES:
            raise TooLargeError("too large for a model file")
        self._taken = Size(text, whole)


def write_model(path: Path, about: Mapping[str, Any], pipelines: Sequence[Any]) -> None:
    """Write a model in one step; `about` must be JSON."""
    header = {"kind": KIND, "version": VERSION, "packages": _packages(), "model": dict(about)}
    try:
        text = json.dumps(header, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"what a model file says about itself must be JSON, but this is not ({error}): use "
            "finite numbers, strings, lists and dictionaries",
            rule="header-not-json",
        ) from error
    content = _archive(text, pipelines, zipfile.ZIP_DEFLATED)
    if _is_inflated(_entries(content), len(content.getbuffer())):
        content = _archive(text, pipelines, zipfile.ZIP_STORED)
    _check_entries(path, _entries(content), len(content.getbuffer()))
    with zipfile.ZipFile(content) as archive:
        _check_opens_again(archive)
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


def read_header(path: Path) -> dict[str, Any]:
    """Read what `write_model` was given as `about`, without looking at the pipelines."""
    content = path.read_bytes()
    _check_archive(path, content)
    model: dict[str, Any] = _header(path, content)["model"]
    return model


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingExtraError("skops", "automl", "a model file") from error
    return skops.io


def _archive(text: str, pipelines: Sequence[Any], compression: int) -> io.BytesIO:
    content = io.BytesIO()
    _skops().dump(list(pipelines), content, compression=compression)
    with zipfile.ZipFile(content, "a", compression=compression) as archive:
        archive.writestr(ENTRY, text)
    return content


def _check_archive(path: Path, content: bytes) -> None:
    try:
        entries = _entries(io.BytesIO(content))
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError):
        # NotImplementedError: a version of the ZIP format that Python does not read.
        _refuse(path, "is not one, or is damaged", WRITTEN_BY_FIT)
    _check_entries(path, entries, len(content))


def _entries(content: io.BytesIO) -> list[zipfile.ZipInfo]:
    with zipfile.ZipFile(content) as archive:
        return archive.infolist()


def _write(path: Path, content: io.BytesIO) -> None:
    path.write_bytes(content.getbuffer())


def _content(path: Path) -> bytes:
    """The bytes of an archive that is not larger than it may be and holds nothing strange."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        _refuse(path, what, WRITTEN_BY_FIT)
    if path.stat().st_size > LARGEST_FILE:
        _refuse(path, "is larger than a model can be", "name another file")
    content = path.read_bytes()
    _check_archive(path, content)
    content = _with_current_modules(content, path)
    description = _entry(path, content, DESCRIPTION)
    found = strangers(description)
    if found:
        _refuse(path, f"holds {quote_names(found)}, which no model needs", "do not use this file")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_boosters(description, archive.read)
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        _refuse(path, f"is damaged ({error})", "fit it again")
    protocol = description.get("protocol") if isinstance(description, dict) else None
    if not isinstance(protocol, int) or protocol < OLDEST_PROTOCOL:
        _refuse(path, "is written in a way that no model is", "do not use this file")
    return content


def _with_current_modules(content: bytes, path: Path) -> bytes:
    """The archive with the modules of today where an earlier version names its own."""
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


def _check_entries(path: Path, entries: Sequence[zipfile.ZipInfo], packed: int) -> None:
    names = [entry.filename for entry in entries]
    odd = [
        name for name in names if name not in (ENTRY, DESCRIPTION) and not _ARRAY.fullmatch(name)
    ]
    if odd or len(set(names)) < len(names):
        _refuse(
            path, f"has entries that no model has ({quote_names(odd or names)})", "do not use it"
        )
    sizes = {entry.filename: entry.file_size for entry in entries}
    texts = max(sizes.get(ENTRY, 0), sizes.get(DESCRIPTION, 0))
    if texts > LARGEST_TEXT or sum(sizes.values()) > LARGEST_FILE:
        _refuse(path, "is larger, when unpacked, than a model may be", SMALLER)
    if _is_inflated(entries, packed):
        _refuse(
            path,
            f"has more than {MOST_TIMES} times its size when unpacked, as no model has",
            "do not use this file",
        )


def _is_inflated(entries: Sequence[zipfile.ZipInfo], packed: int) -> bool:
    """Whether a small file would take very much memory: bytes of all entries, and of its JSON."""
    whole = sum(entry.file_size for entry in entries)
    texts = sum(entry.file_size for entry in entries if entry.filename in (ENTRY, DESCRIPTION))
    return whole > max(SMALL, MOST_TIMES * packed) or texts > max(SMALL_TEXT, MOST_TIMES * packed)


def _header(path: Path, content: bytes) -> dict[str, Any]:
    header = _entry(path, content, ENTRY)
    types = {"kind": str, "version": int, "packages": dict, "model": dict}
    if not isinstance(header, dict) or {n: type(v) for n, v in header.items()} != types:
        _refuse(path, "does not say what it is", WRITTEN_BY_FIT)
    if header["kind"] != KIND:
        _refuse(path, f"says that it is '{header['kind']}'", WRITTEN_BY_FIT)
    made = header["version"]
    if not 1 <= made <= VERSION:
        _refuse(path, f"has version {made}, and this Foretune reads up to {VERSION}", "update it")
    return header


def _entry(path: Path, content: bytes, name: str) -> Any:
    """The JSON in an entry: without NaN and infinity, which JSON does not have."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            text = archive.read(name)
        is_small = _elements(text) <= max(FEW_ELEMENTS, len(content) // BYTES_AN_ELEMENT)
        document = json.loads(text, parse_constant=_no_constant) if is_small else None
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, RuntimeError):
        # RuntimeError: too deep a recursion, a password, an unknown compression.
        _refuse(path, "is not one, or is damaged", WRITTEN_BY_FIT)
    if not is_small:
        _refuse(path, "has more parts than a file of its size can need", "do not use this file")
    return document


def _elements(text: bytes) -> int:
    """How many lists, objects and commas a JSON text has outside of its strings."""
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
    """Which packages have changed since the file was written, as part of a sentence."""
    here = _packages()
    others = [
        f"{name} {made} instead of {here.get(name, 'none')}"
        for name, made in header["packages"].items()
        if here.get(name) != made
    ]
    return f"; it was written with {', '.join(others)}" if others else ""


def _refuse(path: Path, what: str, remedy: str) -> NoReturn:
    # Names in a file may hold characters that do things to a terminal.
    what = "".join(letter if letter.isprintable() else "?" for letter in what)
    raise UsageError(
        f"a model must be a file saved by Foretune, but '{path}' {what}: {remedy}",
        rule="not-a-model",
        value=what,
    )
