"""Every reader of files, with whole files of its kind and the ways to spoil them.

`outcome` is the one rule that holds for all of them: an input is loaded, or refused with a
`ForetuneError`, and nothing is written that should not be.
"""

import base64
import hashlib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import load as parse_safetensors
from safetensors.numpy import save as to_safetensors

from foretune.automl.knowledge.bundle import MANIFEST, SHIPPED, Bundle
from foretune.automl.knowledge.memory import Memory
from foretune.automl.prediction_file import PredictionOptions, predict_file
from foretune.cli.tune_options import resolve_space as space_of_file
from foretune.errors import ArtifactError, ForetuneError
from foretune.experience import Experience
from foretune.experience.journal import Journal
from foretune.methods.zero_shot.portfolio import Portfolio
from foretune.methods.zero_shot.shipped import portfolio as shipped_portfolio
from foretune.search.registry import method
from foretune.stores.formats import TableColumns, import_experience
from foretune.tables.reading import read_table
from foretune.tables.table import Table
from foretune.tables.target import Task
from foretune.testing.problems import problem
from tests.automl.samples import mixed_frame, mixed_table
from tests.hostile.mutations import (
    spoilt_binary,
    spoilt_bytes,
    spoilt_csv,
    spoilt_json,
    spoilt_value,
)

KINDS = ("flat", "cash", "pipeline")


@dataclass(frozen=True)
class Reader:
    """One way into Foretune."""

    name: str
    file: str
    """The name that an input gets."""
    make: Callable[[Random], bytes]
    """A spoilt file."""
    read: Callable[[Path], object]
    writes: tuple[str, ...] = ()
    """Files that a successful read leaves beside the input."""
    cuts: bool = False
    """Whether the end of the input may be cut off, as a torn line of a journal is."""


def outcome(reader: Reader, seed: int, folder: Path) -> str:
    """`loaded` or `refused`; whatever else happens is an error.

    folder: an empty one.
    """
    content = reader.make(Random(f"{reader.name}:{seed}"))
    path = folder / reader.file
    path.write_bytes(content)
    try:
        reader.read(path)
        result = "loaded"
    except ForetuneError:
        result = "refused"
    after = path.read_bytes()
    assert after == content or (reader.cuts and content.startswith(after)), "the input was changed"
    left = {each.name for each in folder.iterdir()} - {path.name}
    assert left == set(reader.writes if result == "loaded" else ()), f"left behind: {left}"
    for each in folder.iterdir():
        each.unlink()
    return result


def all_readers(
    folder: Path, *, methods: tuple[str, ...], algorithms: tuple[str, ...]
) -> list[Reader]:
    """Every reader; `folder` gets the whole files, and what it has is not learnt again.

    methods, algorithms: those whose priors and whose models are spoilt.
    """
    models = _models(folder, algorithms)
    return [
        Reader("space JSON", "space.json", _spoilt_space, _read_space),
        Reader("experience", "past.parquet", _spoilt_experiences(folder), Experience.open),
        *(_prior_reader(folder, name) for name in methods),
        Reader("portfolio", "portfolio.json", _spoilt_portfolio, Portfolio.open),
        Reader("model", "m.foretune", _spoilt_archives(models), _open_model),
        Reader("booster", "m.foretune", _spoilt_boosters(_models(folder, boosters())), _open_model),
        Reader("table to fit (CSV)", "t.csv", _spoilt_table, _read_training),
        Reader("table to fit (Parquet)", "t.parquet", _spoilt_parquet, _read_training),
        _predicting("CSV", "t.csv", _spoilt_table, models[0]),
        _predicting("Parquet", "t.parquet", _spoilt_parquet, models[0]),
        Reader("prepared table", "t.npz", _spoilt_prepared(folder), Table.open),
        Reader("manifest", MANIFEST, _spoilt_manifest, _read_bundle),
        Reader("journal", "trials.jsonl", _spoilt_journal, Journal, cuts=True),
        Reader("memory", "head.json", _spoilt_head, _recall),
        Reader("table of evaluations", "runs.csv", _spoilt_runs, _import_runs),
        Reader("HPO-B", "meta-test-dataset.json", _spoilt_hpob, _import_hpob),
    ]


# Spaces


def _spoilt_space(rng: Random) -> bytes:
    if rng.random() < 0.1:
        return spoilt_json(rng, {"lr": [1e-4, 0.1, "log"], "kind": ["a", "b"], "n": [1, 9]})
    text = problem(rng.choice(KINDS)).space.to_json()
    return _either(rng, text.encode(), lambda: spoilt_json(rng, json.loads(text)))


def _read_space(path: Path) -> None:
    space = space_of_file(path, None)
    again = type(space).from_json(space.to_json())
    assert again == space
    space.sample(3, seed=0)


# Experience


def _spoilt_experiences(folder: Path) -> Callable[[Random], bytes]:
    whole = []
    for kind in KINDS:
        problem(kind).experience.save(folder / f"{kind}.parquet")
        whole.append((folder / f"{kind}.parquet").read_bytes())

    def make(rng: Random) -> bytes:
        content = rng.choice(whole)
        return _either(rng, content, lambda: _signed_experience(rng, content))

    return make


def _signed_experience(rng: Random, content: bytes) -> bytes:
    """Spoilt in its header, its configurations or its columns, with checksums that fit."""
    file = pq.ParquetFile(io.BytesIO(content))
    table, metadata = file.read(), dict(file.metadata.metadata)
    header = json.loads(metadata[b"foretune"])
    packed = base64.b64decode(metadata[b"foretune.configs"])
    raw = pa.decompress(packed, 8 * int(np.prod(header["configs"])), codec="zstd", asbytes=True)
    text = metadata[b"foretune"]
    part = rng.randrange(4)
    if part <= 1:
        text = spoilt_json(rng, header)
    elif part == 2:
        raw = spoilt_bytes(rng, raw)
        header["configs"][0] = len(raw) // 8 // header["configs"][1]
        text = json.dumps(header).encode()
    else:
        table = _other_columns(rng, table)
    stream = io.BytesIO()
    with pq.ParquetWriter(stream, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(
            {
                b"foretune": text,
                b"foretune.configs": base64.b64encode(pa.compress(raw, codec="zstd", asbytes=True)),
                b"foretune.sha256": hashlib.sha256(text + b"\0" + raw).hexdigest().encode(),
            }
        )
    return stream.getvalue()


def _other_columns(rng: Random, table: pa.Table) -> pa.Table:
    """A table in which a column is of another type, is missing, or is there twice."""
    n = len(table)
    columns = (
        lambda: pa.nulls(n),
        lambda: pa.array([rng.choice([None, 0.5, float("nan"), float("inf")]) for _ in range(n)]),
        lambda: pa.array([rng.choice([-1, 0, 1, 2**40, -(2**63)]) for _ in range(n)]),
        lambda: pa.array([rng.choice(["", "a", "\x00", "nan", None]) for _ in range(n)]),
        lambda: pa.array([rng.choice([b"", b"\xff\x00"]) for _ in range(n)]),
        lambda: pa.array([[1, None]] * n),
        lambda: pa.array([{"a": 1}] * n),
        lambda: pa.array([[("k", 1)]] * n, type=pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([rng.random() < 0.5 for _ in range(n)]),
        lambda: pa.array([2**64 - 1 - i for i in range(n)], type=pa.uint64()),
        lambda: pa.array([Decimal(10) ** 30 + i for i in range(n)]),
        lambda: pa.array([rng.choice([-(2**62), 0, 2**62]) for _ in range(n)], pa.timestamp("us")),
        lambda: pa.array(range(n), pa.date32()),
        lambda: pa.array(range(n), pa.time64("ns")),
        lambda: pa.array(range(n), pa.duration("s")),
        lambda: pa.array(np.arange(n, dtype=np.float16)),
        lambda: pa.array(list("ab" * n)[:n]).dictionary_encode(),
        lambda: pa.array([0, 2**40] * n, pa.timestamp("ns", tz="Asia/Kathmandu"))[:n],
    )
    for _ in range(rng.choice((1, 1, 3))):
        place = rng.randrange(table.num_columns)
        change = rng.randrange(8)
        if change == 0 and table.num_columns > 1:
            table = table.remove_column(place)
        elif change == 1:
            table = table.append_column(table.column_names[place], table.column(place))
        elif change == 2:
            table = table.append_column(rng.choice(("", "\x00", "extra")), rng.choice(columns)())
        else:
            table = table.set_column(place, table.column_names[place], rng.choice(columns)())
    return table


# Priors


def _prior_reader(folder: Path, name: str) -> Reader:
    chosen = method(name)
    path = folder / f"{name}.safetensors"
    if not path.exists():
        past = problem("cash").experience if chosen.transfers else None
        chosen.learn(past, seed=0).save(path)
    whole = path.read_bytes()

    def make(rng: Random) -> bytes:
        return _either(rng, whole, lambda: _signed_prior(rng, whole))

    return Reader(f"prior of {name}", "prior.safetensors", make, chosen.load)


def _signed_prior(rng: Random, content: bytes) -> bytes:
    """Spoilt in its description or its arrays, with a checksum that fits."""
    length = int.from_bytes(content[:8], "little")
    described = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["foretune"])
    arrays = dict(parse_safetensors(content))
    described.pop("sha256")
    if rng.random() < 0.5 or not arrays:
        described["meta"] = spoilt_value(rng, described["meta"])
    else:
        _spoil_arrays(rng, arrays)
    if rng.random() < 0.1:
        described = spoilt_value(rng, described)
    return signed_artifact(described, arrays)


def signed_artifact(described: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """The file of any description and arrays, with the checksum that belongs to them."""
    text = _canonical(described)
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(_canonical([name, array.dtype.str, list(array.shape)]).encode())
        digest.update(array.tobytes())
    signed = (
        {**described, "sha256": digest.hexdigest()} if isinstance(described, dict) else described
    )
    return to_safetensors(dict(arrays), metadata={"foretune": _canonical(signed)})


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _spoil_arrays(rng: Random, arrays: dict[str, Any]) -> None:
    name = rng.choice(sorted(arrays))
    array = arrays.pop(name)
    numbers = array.astype(np.float64)
    changed = (
        lambda: None,
        lambda: np.zeros(0),
        lambda: array.ravel().copy(),
        lambda: np.ascontiguousarray(array[..., None]),
        lambda: np.ascontiguousarray(array[:1]),
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: numbers * 1e300,
        lambda: (
            np.where(numbers > np.median(numbers), np.nan, numbers) if numbers.size else numbers
        ),
        lambda: np.full_like(numbers, -np.inf),
        lambda: numbers.astype(np.float32),
        lambda: numbers.astype(np.int8),
        lambda: numbers > 0,
        lambda: np.frombuffer(spoilt_bytes(rng, array.tobytes()), dtype=np.uint8).astype(
            array.dtype
        ),
    )
    with np.errstate(all="ignore"):
        new = rng.choice(changed)()
    if new is not None:
        arrays[name if rng.random() < 0.9 else f"{name}x"] = np.ascontiguousarray(new)


# Portfolios


def _spoilt_portfolio(rng: Random) -> bytes:
    shipped = shipped_portfolio(rng.choice(("xgboost", "zaml")))
    text = replace(shipped, losses=(0.5,) * len(shipped), jobs=10).to_json()
    return _either(rng, text.encode(), lambda: spoilt_json(rng, json.loads(text)))


# Models


def _models(folder: Path, algorithms: tuple[str, ...]) -> list[Path]:
    """Model files, the first one that of a classification."""
    from foretune.automl.estimators.fitted_pipeline import refit
    from foretune.automl.final_model.model import Model
    from foretune.automl.spaces import load_shipped_space

    table = mixed_table(Task.CLASSIFICATION, n=60)
    space = load_shipped_space("pipeline-classification")
    paths = []
    for algorithm in algorithms:
        config = space.build([algorithm]).defaults().dicts()[0]
        small = {
            k: min(v, 8) if k.endswith(("n_estimators", "max_iter")) else v
            for k, v in config.items()
        }
        paths.append(folder / f"{algorithm}.foretune")
        if paths[-1].exists():
            continue
        member = refit(small, table, seed=0)
        Model.of(table, [member], target="class", metric="accuracy").save(paths[-1])
    return paths


def _spoilt_archives(paths: list[Path]) -> Callable[[Random], bytes]:
    whole = [path.read_bytes() for path in paths]

    def make(rng: Random) -> bytes:
        content = rng.choice(whole)
        return _either(rng, content, lambda: _repacked(rng, content))

    return make


def _repacked(rng: Random, content: bytes) -> bytes:
    """An archive whose checksums fit, with an entry that is spoilt, missing, renamed or new."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    names = [name for name in entries if name.endswith(".json")] * 3 + list(entries)
    name = rng.choice(names)
    whole = entries.pop(name)
    change = rng.randrange(8)
    if change == 1:
        entries[rng.choice(("../../evil", "/etc/passwd", "evil.pkl", "a.npy", " "))] = whole
    elif change > 1:
        is_text = name.endswith(".json")
        if name == "schema.json" and b"tree_sizes=" in whole and rng.random() < 0.5:
            entries[name] = _with_spoilt_booster(rng, whole)
        elif is_text:
            entries[name] = spoilt_json(rng, json.loads(whole))
        else:
            entries[name] = spoilt_bytes(rng, whole)
    return _archive(entries)


def boosters() -> tuple[str, ...]:
    """The libraries of boosted trees that are installed here."""
    return tuple(each for each in ("lightgbm", "xgboost", "catboost") if find_spec(each))


def _spoilt_boosters(paths: list[Path]) -> Callable[[Random], bytes]:
    """Archives whose checksums fit, in which only what a booster keeps is spoilt."""
    whole = [path.read_bytes() for path in paths]

    def make(rng: Random) -> bytes:
        with zipfile.ZipFile(io.BytesIO(rng.choice(whole))) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        kept = [name for name in entries if name.endswith(".bin")]
        if kept:
            entries[kept[0]] = spoilt_binary(rng, entries[kept[0]])
        else:
            entries["schema.json"] = _with_spoilt_booster(rng, entries["schema.json"])
        return _archive(entries)

    return make


def _archive(entries: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _with_spoilt_booster(rng: Random, description: bytes) -> bytes:
    """A description in which a number of the text of a LightGBM model is another."""
    text = description.decode()
    starts = [found.start() for found in re.finditer(r"(?<=[ =])-?\d+(?=[ \\])", text)]
    inside = [at for at in starts if text.rfind("tree_sizes=", 0, at) >= 0] or [0]
    at = rng.choice(inside)
    end = at + len(re.match(r"-?\d*", text[at:])[0])
    return (
        text[:at] + rng.choice(("-1", "0", "99", "2147483647", "nan", "")) + text[end:]
    ).encode()


def _open_model(path: Path) -> None:
    from foretune.automl.final_model.model import Model

    Model.open(path).predict(mixed_frame(5))


# Tables


def _frame() -> pd.DataFrame:
    return mixed_frame(40).drop(columns="amount")


def _spoilt_table(rng: Random) -> bytes:
    text = _frame().to_csv(index=False)
    return _either(rng, text.encode(), lambda: spoilt_csv(rng, text))


def _spoilt_parquet(rng: Random) -> bytes:
    table = pa.Table.from_pandas(_frame(), preserve_index=False)
    structured = rng.random() < 0.6
    stream = io.BytesIO()
    pq.write_table(_other_columns(rng, table) if structured else table, stream)
    return stream.getvalue() if structured else spoilt_bytes(rng, stream.getvalue())


def _read_training(path: Path) -> None:
    read_table(path, "class")


def _predicting(what: str, file: str, make: Callable[[Random], bytes], model: Path) -> Reader:
    from foretune.automl.final_model.model import Model

    opened = Model.open(model)

    def read(path: Path) -> None:
        predict_file(opened, path, path.with_name("out.csv"), PredictionOptions(probabilities=True))

    return Reader(f"table to predict ({what})", file, make, read, writes=("out.csv",))


def _spoilt_prepared(folder: Path) -> Callable[[Random], bytes]:
    path = folder / "whole.npz"
    mixed_table(Task.CLASSIFICATION, n=40).save(path)
    whole = path.read_bytes()
    with np.load(path) as loaded:
        arrays = {name: loaded[name] for name in loaded.files}

    def make_signed(rng: Random) -> bytes:
        spoilt = dict(arrays)
        if rng.random() < 0.6:
            text = spoilt_json(rng, json.loads(bytes(arrays["header"])))
            spoilt["header"] = np.frombuffer(text, dtype=np.uint8)
        else:
            _spoil_arrays(rng, spoilt)
        stream = io.BytesIO()
        np.savez(stream, **spoilt)
        return stream.getvalue()

    return lambda rng: _either(rng, whole, lambda: make_signed(rng))


# Knowledge and memory


def _spoilt_manifest(rng: Random) -> bytes:
    whole = (SHIPPED / MANIFEST).read_bytes()
    return _either(rng, whole, lambda: spoilt_json(rng, json.loads(whole)))


def _read_bundle(path: Path) -> None:
    """Open the folder, and what it names, which is not there."""
    bundle = Bundle.open(path.parent)
    for learnt in bundle.spaces.values():
        with suppress(ArtifactError):
            bundle.path(learnt.definition)


def _journal() -> str:
    past = problem("cash").experience
    configs = past.configs.dicts()[:6]
    lines = [
        {"task": "t", "config": config, "status": "DONE", "values": {"loss": 0.5 + i},
         "seconds": 0.1, "reason": ""}
        for i, config in enumerate(configs)
    ]  # fmt: skip
    return "".join(json.dumps(line) + "\n" for line in lines)


def _spoilt_journal(rng: Random) -> bytes:
    text = _journal()
    lines = text.splitlines()

    def spoil_line() -> bytes:
        at = rng.randrange(len(lines))
        spoilt = [line.encode() for line in lines]
        spoilt[at] = spoilt_json(rng, json.loads(lines[at]))
        return b"\n".join(spoilt) + b"\n"

    return _either(rng, text.encode(), spoil_line)


def _spoilt_head(rng: Random) -> bytes:
    past = problem("cash").experience
    head = {
        "space": json.loads(past.space.to_json()),
        "metrics": {"loss": "min"},
        "task": "t",
        "meta_features": {"rows": 10.0},
    }
    return _either(rng, json.dumps(head).encode(), lambda: spoilt_json(rng, head))


def _recall(path: Path) -> None:
    """What a user's memory makes of a journal whose head is spoilt: it must not be in the way."""
    folder = path.parent.parent / f"{path.parent.name}-memory"
    journals = folder / "cash.journals"
    journals.mkdir(parents=True)
    (journals / "1.json").write_bytes(path.read_bytes())
    (journals / "1.jsonl").write_bytes(_spoilt_journal(Random(len(path.read_bytes()))))
    try:
        memory = Memory(folder)
        memory.recall("cash")
        left = sorted(each.name for each in folder.rglob("*") if each.name.endswith(".tmp"))
        assert not left, f"left behind: {left}"
        for file in folder.glob("*.parquet"):
            Experience.open(file)
    finally:
        shutil.rmtree(folder)


# Imports


def _spoilt_runs(rng: Random) -> bytes:
    past = problem("cash").experience
    rows = [
        {"task": task, "config": json.dumps(config), "loss": 0.5 + i, "status": "DONE"}
        for task in past.tasks[:2]
        for i, config in enumerate(past.configs.dicts()[:8])
    ]
    if rng.random() < 0.5:
        row = rng.choice(rows)
        row["config"] = spoilt_json(rng, json.loads(row["config"])).decode(errors="replace")
    text = pd.DataFrame(rows).to_csv(index=False)
    return _either(rng, text.encode(), lambda: spoilt_csv(rng, text))


def _import_runs(path: Path) -> None:
    columns = TableColumns(
        task="task", values={"loss": "min"}, config_column="config", status="status"
    )
    import_experience("table", path, columns=columns)


def _spoilt_hpob(rng: Random) -> bytes:
    document = {
        "42": {
            "t1": {"X": [[0.1, 0.2], [0.3, 0.9]], "y": [[0.5], [0.7]]},
            "t2": {"X": [[0.0, 1.0]], "y": [[0.25]]},
        }
    }
    return _either(rng, json.dumps(document).encode(), lambda: spoilt_json(rng, document))


def _import_hpob(path: Path) -> None:
    import_experience("hpob", path.parent)


def _either(rng: Random, whole: bytes, structured: Callable[[], bytes]) -> bytes:
    """Bytes spoilt blindly, or by who knows their format."""
    return spoilt_bytes(rng, whole) if rng.random() < 0.4 else structured()
