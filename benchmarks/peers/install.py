"""Make one virtual environment for each peer, with the versions of `environments.toml`.

    python benchmarks/peers/install.py --environments DIR [optuna smac ...]

What was installed in the end, dependencies included, is written to `DIR/NAME.txt`.
"""

import argparse
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def describe_install() -> dict[str, dict[str, list[str]]]:
    """The packages of every environment."""
    plain: dict[str, Any] = tomllib.loads((HERE / "environments.toml").read_text("utf-8"))
    return plain


def python_of(environments: Path, name: str) -> Path:
    """Return the interpreter of one environment."""
    return environments / name / "bin" / "python"


def install(environments: Path, name: str, packages: dict[str, list[str]]) -> None:
    """Make the environment again. Its list of versions, written last, shows that it is whole."""
    shutil.rmtree(environments / name, ignore_errors=True)
    venv.create(environments / name, with_pip=True)
    pip = [str(python_of(environments, name)), "-m", "pip"]
    subprocess.run([*pip, "install", "-q", *packages["packages"]], check=True)
    if "alone" in packages:
        subprocess.run([*pip, "install", "-q", "--no-deps", *packages["alone"]], check=True)
    frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
    (environments / f"{name}.txt").write_text(frozen, "utf-8")


def main() -> None:
    """Install the named environments, or all, unless they exist already."""
    peers = describe_install()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("names", nargs="*", default=list(peers))
    given = parser.parse_args()
    for name in given.names:
        if (given.environments / f"{name}.txt").exists():
            continue
        try:
            install(given.environments, name, peers[name])
        except subprocess.CalledProcessError as error:
            sys.exit(f"the environment of '{name}' could not be made: {error}")
        print(f"{name}: installed", flush=True)


if __name__ == "__main__":
    main()
