"""Folders that cannot be written to: every command is refused in one sentence and changes nothing.

    python benchmarks/reliability/read_only.py

Each command runs in a read-only folder, and `fit` also with a read-only memory of past fits. It
must end with exit code 2 and one sentence within seconds (a `fit` that cannot remember may go on),
and leave every byte as it was. When the folder can be written to again, the same command ends well.
Needs root or user namespaces, for the mount.
"""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from commands import BENCH, COLLECT, FIT, IMPORT, IMPORT_RUNS, LEARN, OUT, TUNE, prepare
from lives import import_early, run_life
from mounts import mount_read_only, skip_without_namespace, unmount
from parts import make_parser
from tally import MISTAKE, SAID, Tally

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
        run_life(place, IMPORT_RUNS, said=said)
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
    if tally.check_end(end, folder, *allowed):
        tally.check_refusal(end, folder)
    if digest(attacked) != before:
        tally.blame("wrong", f"{attacked} has changed")
    tally.row("read-only folder").print()
    unmount(attacked)
    said.unlink()
    again = run_life(place, COMMANDS[name], said=said)
    if tally.check_end(again, folder, 0):
        shutil.rmtree(folder)


def main() -> None:
    given = make_parser(__doc__, short="tune alone").parse_args()
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
    tally.remove_unless_faulty(root)
    tally.row("read-only folder").print()


if __name__ == "__main__":
    main()
