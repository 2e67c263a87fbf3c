"""One file: what is saved comes back, and nothing else is believed."""

import base64
import contextlib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretune.errors import DamagedError, ExperienceError
from foretune.experience import Experience
from foretune.experience.parquet_format import FileLimits
from foretune.experience.parquet_writer import write_experience
from foretune.space import Space
from tests.refusals import refuses

from .examples import ERROR, NAN, experiences, notes_of, one_metric, rows_of, small

IN_ROWS = FileLimits(configs_in_footer=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("experience")


@pytest.fixture(scope="module")
def saved(folder: Path) -> bytes:
    path = folder / "small.parquet"
    small().save(path)
    return path.read_bytes()


def test_everything_comes_back(folder: Path) -> None:
    @settings(max_examples=40)
    @given(experiences())
    def round_trip(experience: Experience) -> None:
        path = folder / "any.parquet"
        experience.save(path)
        back = Experience.open(path)
        assert rows_of(back) == rows_of(experience)
        assert notes_of(back) == notes_of(experience)
        assert back.space == experience.space
        assert back.tasks == experience.tasks
        assert back.configs == experience.compact().configs
        np.testing.assert_array_equal(back.values, experience.values)
        assert back.values.dtype == np.float64

    round_trip()


def test_notes_come_back_and_are_plain_json(saved: bytes, folder: Path) -> None:
    assert notes_of(Experience.open(folder / "small.parquet")) == notes_of(small())
    header = pq.ParquetFile(pa.BufferReader(saved)).metadata.metadata[b"foretune"]
    constants: list[str] = []
    json.loads(header, parse_constant=constants.append)
    assert constants == []  # such as NaN, of which other readers know nothing


def test_a_space_that_offers_infinity_comes_back(folder: Path) -> None:
    space = Space.of({"eps": [1.0, np.inf], "limit": np.inf})
    configs = space.encode([{"eps": np.inf, "limit": np.inf}])
    made = Experience.build(space, [ERROR], ["iris"], [0], configs, [0], [0.5])
    made.save(folder / "infinite.parquet")
    back = Experience.open(folder / "infinite.parquet")
    assert (back.space, back.configs) == (space, configs)


def test_a_task_that_no_file_can_hold_is_named() -> None:
    with refuses("half-character", value="caf\udce9"):
        one_metric({"caf\udce9": [1.0]})


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_file_may_be_named_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.parquet")
    small().save(path)
    assert rows_of(Experience.open(path)) == rows_of(small())


def test_several_row_groups(folder: Path) -> None:
    experience = one_metric({f"t{i}": [float(i), NAN, 2.0] for i in range(10)})
    limits = FileLimits(rows_a_group=3)
    write_experience(experience, folder / "groups.parquet", limits=limits)
    assert pq.ParquetFile(folder / "groups.parquet").num_row_groups == 7
    back = Experience.open(folder / "groups.parquet")
    assert rows_of(back) == rows_of(experience)


def test_other_tools_can_read_the_evaluations(saved: bytes) -> None:
    table = pq.read_table(pa.BufferReader(saved))
    assert table.column("task").to_pylist() == ["iris"] * 3 + ["wine"] * 2
    assert table.column("metric:error").to_pylist()[-2:] == [0.5, 0.4]
    assert table.schema.field("config").type == pa.int32()
    assert table.schema.field("status").type == pa.int8()
    assert table.schema.field("seconds").type == pa.float32()


def test_saving_replaces_a_file_in_one_step(folder: Path) -> None:
    path = folder / "twice.parquet"
    small().save(path)
    one_metric({"a": [1.0]}).save(path)
    assert Experience.open(path).tasks == ("a",)


class CallAtEachStep:
    """Progress that calls a function whenever some rows have been read or written."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.step = lambda n=1, note="": call()

    def start(self, what: str, total: int | None) -> None: ...
    def stop(self) -> None: ...


def test_a_file_replaced_while_it_is_read_is_read_as_it_was(folder: Path) -> None:
    path = folder / "replaced.parquet"
    old, new = one_metric({"a": [1.0, 2.0]}), one_metric({f"t{i}": [3.0] * 5 for i in range(20)})
    write_experience(old, path, limits=FileLimits(rows_a_group=1))
    replace = CallAtEachStep(lambda: new.save(path))
    assert rows_of(Experience.open(path, progress=replace)) == rows_of(old)
    assert rows_of(Experience.open(path)) == rows_of(new)


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kept.parquet"
    small().save(path)
    before = path.read_bytes()

    def fill_disk() -> None:
        raise OSError(28, "No space left on device")

    with refuses("path-not-writable", value=path) as refused:
        one_metric({"a": [1.0]}).save(path, progress=CallAtEachStep(fill_disk))
    assert "No space left on device" in str(refused.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    with refuses("path-is-folder", field="path"):
        small().save(tmp_path)
    with refuses("path-not-writable"):
        small().save(tmp_path / "missing" / "e.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_cannot_be_opened_is_not_saved(tmp_path: Path) -> None:
    failed = one_metric({"a": [1.0], "b": [np.inf]}).only(["b"])
    with refuses("metric-without-values", field="error"):
        failed.save(tmp_path / "failed.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_large_table_of_configurations_stands_in_the_rows(folder: Path) -> None:
    limits = FileLimits(configs_in_footer=0, rows_a_group_with_configs=3)

    @settings(max_examples=40)
    @given(experiences())
    def round_trip(experience: Experience) -> None:
        path = folder / "in_rows.parquet"
        write_experience(experience, path, limits=limits)
        back = Experience.open(path)
        assert rows_of(back) == rows_of(experience)
        assert notes_of(back) == notes_of(experience)
        assert back.configs == experience.compact().configs
        assert back.config_index.tolist() == experience.compact().config_index.tolist()

    round_trip()


@pytest.mark.parametrize("limits", [FileLimits(), FileLimits(configs_in_footer=0)])
def test_an_experience_is_opened_without_pandas(limits: FileLimits, tmp_path: Path) -> None:
    """Importing pandas takes half a second, and a first suggestion may wait for two."""
    write_experience(small(), tmp_path / "e", limits=limits)
    code = (
        "import sys; from foretune.experience import Experience; "
        f"Experience.open({str(tmp_path / 'e')!r}); print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_configurations_in_rows_are_read_by_other_tools(folder: Path) -> None:
    space = Space.of({"x": (0.0, 1.0), "model": {"svm": {}, "tree": {"depth": (1, 9)}}})
    configs = space.encode(
        [{"x": 0.5, "model": "svm"}, {"x": 0.25, "model": "tree", "model:tree:depth": 3}]
    )
    made = Experience.build(space, [ERROR], ["a"], [0, 0, 0], configs, [0, 1, 0], [1.0, 2.0, 3.0])
    write_experience(made, path := folder / "columns.parquet", limits=IN_ROWS)
    rows = pq.read_table(path)
    assert rows.column("config:x").to_pylist() == [0.5, 0.25, None]
    assert rows.column("config:model:tree:depth").to_pylist()[1:] == [3.0, None]
    header = json.loads(pq.ParquetFile(path).metadata.metadata[b"foretune"])
    assert (header["version"], header["configs_apart"]) == (2, [])


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"configs": [3, 3]}, "configs-missing"),
        ({"configs": [1, 3]}, "damaged-file"),
        ({"configs": [10**12, 3]}, "too-many-configs"),
        ({"configs_apart": [0]}, "damaged-file"),
    ],
)
def test_configurations_in_rows_must_be_all_there(
    tmp_path: Path, change: dict[str, Any], rule: str
) -> None:
    space = Space.of({"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)})
    configs = space.sample(2, seed=0)
    made = Experience.build(space, [ERROR], ["a"], [0, 0, 0], configs, [0, 1, 0], [1.0, 2.0, 3.0])
    write_experience(made, path := tmp_path / "rows.parquet", limits=IN_ROWS)
    assert rows_of(Experience.open(forged(path.read_bytes(), path))) == rows_of(made)
    with refuses(rule, kind=DamagedError):
        Experience.open(forged(path.read_bytes(), path, header=change))


def test_missing_files_folders_and_other_files_are_refused(tmp_path: Path) -> None:
    with refuses("file-not-found", field="path"):
        Experience.open(tmp_path / "none.parquet")
    with refuses("path-is-folder", field="path"):
        Experience.open(tmp_path)
    (tmp_path / "text.csv").write_text("a,b\n1,2\n")
    with refuses("not-a-parquet-file") as refused:
        Experience.open(tmp_path / "text.csv")
    assert not isinstance(refused.value, DamagedError)
    (tmp_path / "empty.parquet").write_bytes(b"")
    with refuses("damaged-file", kind=DamagedError):
        Experience.open(tmp_path / "empty.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with refuses("no-space-in-file"):
        Experience.open(tmp_path / "other.parquet")


def test_an_experience_may_have_any_name(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "runs.old"
    path.write_bytes(saved)
    assert rows_of(Experience.open(path)) == rows_of(small())
    path.write_bytes(saved[:-50])
    with pytest.raises(DamagedError):
        Experience.open(path)


def forged(
    saved: bytes,
    path: Path,
    *,
    header: dict[str, Any] | None = None,
    columns: dict[str, list[Any]] | None = None,
    seal: bool = True,
) -> Path:
    """A copy of a file with parts of its header or whole columns changed."""
    table = pq.read_table(pa.BufferReader(saved))
    metadata = dict(pq.ParquetFile(pa.BufferReader(saved)).metadata.metadata)
    told = json.loads(metadata[b"foretune"])
    rows, width = told["configs"]
    raw = pa.decompress(
        base64.b64decode(metadata[b"foretune.configs"]),
        decompressed_size=8 * len(told.get("configs_apart", range(rows))) * width,
        codec="zstd",
        asbytes=True,
    )
    text = json.dumps(told | (header or {})).encode()
    metadata[b"foretune"] = text
    if seal:
        metadata[b"foretune.sha256"] = hashlib.sha256(text + b"\0" + raw).hexdigest().encode()
    for name, content in (columns or {}).items():
        position = table.schema.get_field_index(name)
        field = table.schema.field(name)
        table = table.set_column(position, field, pa.array(content, field.type))
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)
    return path


def test_a_forgery_that_changes_nothing_is_read(saved: bytes, tmp_path: Path) -> None:
    assert rows_of(Experience.open(forged(saved, tmp_path / "same"))) == rows_of(small())


def test_rows_go_by_the_name_of_their_task(saved: bytes, tmp_path: Path) -> None:
    back = Experience.open(forged(saved, tmp_path / "turned", header={"tasks": ["wine", "iris"]}))
    assert back.tasks == ("wine", "iris")
    assert sorted(rows_of(back)) == sorted(rows_of(small()))


@pytest.mark.parametrize(
    ("changes", "rule", "field"),
    [
        ({"header": {"version": 4}}, "newer-version", "version"),
        ({"header": {"format": "cookbook"}}, "unknown-format", "format"),
        ({"header": {"tasks": ["a", "b"]}, "seal": False}, "wrong-checksum", ""),
        ({"header": {"tasks": ["iris"]}}, "damaged-file", ""),
        ({"header": {"tasks": ["iris", "iris", "wine"]}}, "repeated-name", "task"),
        ({"header": {"configs": [10**9, 10**9]}}, "too-many-configs", "configs"),
        ({"header": {"configs": [-1, 2]}}, "too-many-configs", "configs"),
        ({"header": {"metrics": [{"name": "z", "direction": "min"}]}}, "damaged-file", ""),
        ({"header": {"metrics": [{"name": "error", "direction": "up"}]}}, "damaged-file", ""),
        ({"header": {"space": {"hyperparameters": []}}}, "no-hyperparameters", ""),
        ({"header": {"splits": {"s": {"train": ["nobody"]}}}}, "unknown-task", "s"),
        ({"header": {"starts": {"iris": {"s": [99]}}}}, "index-outside", "s"),
        ({"columns": {"config": [0, 1, 2, 3, 0]}}, "index-outside", "configuration"),
        ({"columns": {"config": [0, 1, 2, -1, 0]}}, "index-outside", "configuration"),
        ({"columns": {"status": [0, 0, 0, 0, 9]}}, "unknown-status", "status"),
        ({"columns": {"metric:error": [NAN] * 5}}, "metric-without-values", "error"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused(
    saved: bytes, tmp_path: Path, changes: dict[str, Any], rule: str, field: str
) -> None:
    path = forged(saved, tmp_path / "forged.parquet", **changes)
    with refuses(rule, field=field, kind=ExperienceError):
        Experience.open(path)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("config", pa.array([0] * 5, pa.time64("ns"))),
        ("seconds", pa.array(["0"] * 5).dictionary_encode()),
    ],
)
def test_columns_of_types_that_numpy_lacks_are_refused(
    saved: bytes, tmp_path: Path, name: str, values: pa.Array
) -> None:
    table = pq.read_table(pa.BufferReader(saved))
    metadata = pq.ParquetFile(pa.BufferReader(saved)).metadata.metadata
    table = table.set_column(table.schema.get_field_index(name), name, values)
    path = tmp_path / "typed.parquet"
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(
            {key: value for key, value in metadata.items() if key != b"ARROW:schema"}
        )
    with pytest.raises(DamagedError):
        Experience.open(path)


def test_only_one_error_for_every_truncation(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    for length in range(0, len(saved), 97):
        path.write_bytes(saved[:length])
        with pytest.raises(ExperienceError):
            Experience.open(path)


def test_a_byte_of_the_evaluations_that_is_another_is_noticed(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    group = pq.ParquetFile(pa.BufferReader(saved)).metadata.row_group(0)
    for number in range(group.num_columns):
        column = group.column(number)
        begin = column.dictionary_page_offset or column.data_page_offset
        for place in range(begin, begin + column.total_compressed_size, 3):
            damaged = bytearray(saved)
            damaged[place] ^= 1
            path.write_bytes(bytes(damaged))
            with contextlib.suppress(DamagedError):
                assert rows_of(Experience.open(path)) == rows_of(small())


@settings(max_examples=200)
@given(st.data())
def test_only_one_error_for_flipped_bytes(saved: bytes, folder: Path, data: st.DataObject) -> None:
    damaged = bytearray(saved)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(saved) - 1))] ^= data.draw(st.integers(1, 255))
    path = folder / "flipped.parquet"
    path.write_bytes(bytes(damaged))
    # A byte that carries no meaning may be damaged without harm; nothing else may be raised.
    with contextlib.suppress(ExperienceError):
        assert rows_of(Experience.open(path)) == rows_of(small())
