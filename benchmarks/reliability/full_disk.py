"""A full file system: `tune` and `fit` get random amounts of room, and then the same command again.

    python benchmarks/reliability/full_disk.py --times 20

A file system of a few MiB in memory holds the folder of a command, or the user's memory of past
fits. A file takes all but a random amount of room before the command starts or in the middle of
it. The command must end with exit code 0 or with 2 and one sentence that names what it could not
write; it must leave no unfinished file and lose or change nothing that was stored. When there is
room again, the same command must end well, with every trial once, and a model that predicts.
Needs root or user namespaces, for the mount.
"""

import os
import random
import tempfile
from pathlib import Path
from typing import NamedTuple

from bowl import SECONDS
from commands import COLLECT, FIT, IMPORT, OUT, TUNE, prepare
from lives import import_early, run_life, start_life, wait_for, wait_or_kill
from mounts import mount_memory, skip_without_namespace, unmount
from parts import make_parser, run_parts
from tally import MISTAKE, SAID, Ended, Tally

from stores import Trial, check_fit, compare, compare_evaluations, read_sqlite, read_unfinished

SIZE_KIB = 8192
TRIALS = 10
COUNTED = ("--trials", str(TRIALS), "--jobs", "1")
COMMANDS = {
    "tune": (*TUNE, *COUNTED, "--out", "tuned.parquet", "--report", "tuned.html"),
    "fit": (*FIT, *COUNTED),
    "fit-home": (*FIT, *COUNTED),
    "collect": COLLECT,
    "import": IMPORT,
}
"""`fit-home` has room for its folder, but little for the user's memory."""
STORES = {"tune": "study.db", "fit": f"{OUT}/study.db", "fit-home": f"{OUT}/study.db"}
NEEDED_KIB = {"tune": 900, "fit": 900, "fit-home": 60, "collect": 60, "import": 40}
"""About as much as the command writes: more room than this is no attack."""
BALLAST = "ballast"


def fill(disk: Path, leave_kib: int) -> None:
    """Write a file that leaves so much room."""
    room = os.statvfs(disk)
    size = room.f_bavail * room.f_frsize - leave_kib * 1024
    with (disk / BALLAST).open("ab") as ballast:
        if size > 0:
            os.posix_fallocate(ballast.fileno(), ballast.seek(0, os.SEEK_END), size)


def attack(name: str, folder: Path, draw: random.Random, tally: Tally) -> str:
    """Run a command without room and again with room; how the first one ended."""
    disk = folder / ("home" if name == "fit-home" else "disk")
    mount_memory(disk, SIZE_KIB)
    place = folder if name == "fit-home" else disk
    prepare(place)
    store = place / STORES.get(name, "none")
    leave = int(2 ** draw.uniform(2, 1 + NEEDED_KIB[name].bit_length()))
    said = folder / SAID
    if draw.random() < 0.5:
        fill(disk, leave)
        end = run_life(place, COMMANDS[name], said=said)
    else:
        pid = start_life(place, COMMANDS[name], said=said)
        end = wait_for(pid, draw.uniform(0.1, 4.0))
        if end is None:
            fill(disk, min(leave, 256))
            end = wait_or_kill(pid)
    tally.count += 1
    check_without_room(end, folder, place, tally)
    # Also what is read without room: it must be whole now, not only later.
    before = read_unfinished(store, tally)
    (disk / BALLAST).unlink(missing_ok=True)
    said.unlink()
    if tally.check_end(run_life(place, COMMANDS[name], said=said), folder, 0):
        check_whole(name, place, before, tally)
    unmount(disk)
    return "refused" if end is not None and end.code == MISTAKE else "had enough room"


def check_without_room(end: Ended | None, folder: Path, place: Path, tally: Tally) -> None:
    """Check how a command without room has ended."""
    if tally.check_end(end, folder, 0, MISTAKE):
        tally.check_refusal(end, folder)
    left = [path for path in place.rglob("*") if path.suffix == ".tmp"]
    if left:
        tally.blame("wrong", f"{left} are unfinished in {folder}")


def check_whole(name: str, place: Path, before: dict[int, Trial], tally: Tally) -> None:
    """Check what the command leaves that had room in the end."""
    from foretune.experience import Experience

    if name in STORES:
        now, running = read_sqlite(place / STORES[name], tally)
        compare(before, now, running, 0, tally)
        if len(now) != TRIALS:
            tally.blame("lost", f"{len(now)} of {TRIALS} trials in {place}")
    if name == "tune":
        # A result that could not be stored is evaluated again, as is one that was cut off.
        compare_evaluations(place, now, tally, more=1)
        if len(Experience.open(place / "tuned.parquet")) != TRIALS:
            tally.blame("lost", f"not all trials are in {place}/tuned.parquet")
    elif name in ("fit", "fit-home"):
        os.environ["FORETUNE_HOME"] = str(place / "home")
        if check_fit(place, TRIALS, tally) != TRIALS:
            tally.blame("lost", f"not all trials are remembered in {place}")
    elif name == "collect":
        if len(Experience.open(place / "collected.parquet")) != 12:
            tally.blame("lost", f"not all evaluations are in {place}/collected.parquet")
    elif len(Experience.open(place / "imported.parquet")) != 240:
        tally.blame("lost", f"not all evaluations are in {place}/imported.parquet")


def main() -> None:
    parser = make_parser(__doc__, times=20, short="tune, once")
    parser.add_argument("--command", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    given = parser.parse_args()
    skip_without_namespace("full file system")
    if given.short:
        given.command, given.times = ["tune"], 1
    os.environ.setdefault(SECONDS, "0.02" if given.short else "0.1")
    import_early(only_tune=given.short)
    root = Path(tempfile.mkdtemp(prefix="full-"))
    parts = [
        Part(name, number, given.seed, root)
        for number in range(given.times)
        for name in given.command
    ]
    tallies: dict[str, Tally] = {}
    for part, found in run_parts(attack_once, parts, given.jobs):
        tally = tallies.setdefault(part.command, Tally())
        tally.add(found)
        where = "the user's memory" if part.command == "fit-home" else "the folder"
        tally.row(f"full file system for {where} of {part.command.split('-')[0]}").print()


class Part(NamedTuple):
    """One attack on one command."""

    command: str
    number: int
    seed: int
    root: Path


def attack_once(part: Part) -> Tally:
    """Attack a command in a folder of its own, which stays if something is wrong."""
    folder, tally = part.root / f"{part.command}-{part.number}", Tally()
    folder.mkdir()
    attack(part.command, folder, random.Random(f"{part.seed} {part.number}"), tally)
    tally.remove_unless_faulty(folder)
    return tally


if __name__ == "__main__":
    main()
