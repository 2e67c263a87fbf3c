"""Small and read-only file systems of this process alone, gone when it ends."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from rows import Row

INSIDE = "ATTACK_HAS_MOUNTS"


def enter_namespace() -> str:
    """Run this script again in a mount namespace of its own; why that cannot be, if so."""
    if os.environ.get(INSIDE):
        return ""
    enter = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "-r"]
    if shutil.which("unshare") is None or subprocess.run([*enter, "true"], check=False).returncode:
        return "a file system can be mounted here neither by root nor in a user namespace"
    os.environ[INSIDE] = "1"
    return os.execvp(enter[0], [*enter, sys.executable, *sys.argv])


def skip_without_namespace(attack: str) -> None:
    """Enter the namespace, or print a row that says why the attack was not made, and end."""
    reason = enter_namespace()
    if reason:
        Row(attack, 0, skipped=reason).print()
        sys.exit(0)


def mount_memory(folder: Path, kib: int) -> None:
    """Mount an empty file system of this size."""
    folder.mkdir(parents=True, exist_ok=True)
    _call("mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder))


def mount_read_only(folder: Path) -> None:
    """Let nothing be written below a folder, not even by root."""
    _call("mount", "--bind", str(folder), str(folder))
    _call("mount", "-o", "remount,ro,bind", str(folder))


def unmount(folder: Path) -> None:
    _call("umount", "--lazy", str(folder))


def _call(*words: str) -> None:
    subprocess.run(words, check=True)
