"""What scripts of attacks share: their options, and parts of an attack in several processes."""

import argparse
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

Part = TypeVar("Part")
Found = TypeVar("Found")


def make_parser(
    doc: str | None, *, short: str, times: int | None = None
) -> argparse.ArgumentParser:
    """The options that most scripts have. short: what the short form does."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    if times is not None:
        parser.add_argument("--times", type=int, default=times, help="attacks on each command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="attacks at the same time")
    parser.add_argument("--short", action="store_true", help=short)
    return parser


def run_parts(
    function: Callable[[Part], Found], parts: Iterable[Part], jobs: int
) -> Iterator[tuple[Part, Found]]:
    """Run each part in a process that has the imports of this one.

    Yields a part with what came of it, as soon as it is there.
    """
    with ProcessPoolExecutor(max(1, jobs), mp_context=get_context("fork")) as pool:
        futures = {pool.submit(function, part): part for part in parts}
        for future in as_completed(futures):
            yield futures[future], future.result()
