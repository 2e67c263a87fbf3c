"""Folders that cannot be written to: every command is refused in one sentence and changes nothing.

    python benchmarks/reliability/read_only.py

Each command runs in a read-only folder, and `fit` also with a read-only memory of past fits. It
must end with exit code 2 and one sentence within seconds (a `fit` that cannot remember may go on),
and leave every byte as it was. When the folder can be written to again, the same command ends well.
Needs root or user namespaces, for the mount.
"""

import argparse
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from lives import (
    BENCH,
    COLLECT,
    FIT,
    IMPORT,
    LEARN,
    MISTAKE,
    OUT,
    SAID,
    TUNE,
    Tally,
    import_early,
    prepare,
    read,
    run_life,
)
from mounts import mount_read_only, skip_without_namespace, unmount

COUNTED = ("--trials", "4", "--jobs", "1")
COMMANDS = {
    "tune": (*TUNE, *COUNTED),
    "tune --out": (*TUNE, *COUNTED, "--out", "tuned.parquet", "--report", "tuned.html"),
    "fit": (*FIT, *COUNTED),
    "learn": LEARN,
    "collect": COLLECT,
    "bench run": BENCH,
    "import": IMPORT,
    "predict": ("predict", f"{OUT}/model.foretune", "table.csv", "-o", "predictions.csv"),
}
PREPARED = ("learn", "predict", "bench run")
"""These read what other commands have written."""


def digest(folder: Path) -> str:
    """A fingerprint of all files of a folder."""
    content = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        content.update(str(path.relative_to(folder)).encode())
        if path.is_file():
            content.update(path.read_bytes())
    return content.hexdigest()


def attack(name: str, root: Path, tally: Tally, *, closed: str, begun: bool) -> None:
    """Run a command while a folder is read-only, and again when it is not."""
    folder = root / f"{name.replace(' ', '-')}-{closed}-{begun}"
    place, home = folder / "place", folder / "home"
    prepare(place)
    home.mkdir()
    os.environ["ATTACKED_HOME"] = str(home)
    said = folder / SAID
    if name in PREPARED or begun:
        run_life(place, (*FIT, *COUNTED), said=said)
        words = tuple("runs.parquet" if word == "imported.parquet" else word for word in IMPORT)
        run_life(place, words, said=said)
        if begun:
            run_life(place, COMMANDS[name], said=said)
        said.unlink()
    attacked = home if closed == "home" else place
    mount_read_only(attacked)
    before = digest(attacked)
    end = run_life(place, COMMANDS[name], said=said)
    tally.count += 1
    # What is finished already, and a fit that cannot remember, need not write.
    allowed = (0, MISTAKE) if begun or closed == "home" else (MISTAKE,)
    if tally.check_end(end, folder, *allowed) and end is not None and end.code == MISTAKE:
        tally.refused += 1
        last = read(said).strip().splitlines()[-1]
        if not last.startswith("foretune: ") or "Errno" in last:
            tally.blame("wrong", f"the last line is '{last}' in {folder}")
    if digest(attacked) != before:
        tally.blame("wrong", f"{attacked} has changed")
    tally.row("read-only folder").print()
    unmount(attacked)
    said.unlink()
    again = run_life(place, COMMANDS[name], said=said)
    if tally.check_end(again, folder, 0):
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="tune alone")
    given = parser.parse_args()
    skip_without_namespace("read-only folder")
    import_early(only_tune=given.short)
    tally, root = Tally(), Path(tempfile.mkdtemp(prefix="read-only-"))
    for name in ("tune",) if given.short else COMMANDS:
        attack(name, root, tally, closed="place", begun=False)
    if not given.short:
        for name in ("tune", "fit", "bench run"):
            attack(name, root, tally, closed="place", begun=True)
        attack("fit", root, tally, closed="home", begun=False)
        attack("fit", root, tally, closed="home", begun=True)
    if not tally.said:
        shutil.rmtree(root)
    tally.row("read-only folder").print()


if __name__ == "__main__":
    main()
