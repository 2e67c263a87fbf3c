"""Parts of an attack in processes of their own, which have the imports of this one."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

Part = TypeVar("Part")
Found = TypeVar("Found")


def run_parts(
    function: Callable[[Part], Found], parts: Iterable[Part], jobs: int
) -> Iterator[tuple[Part, Found]]:
    """Each part with what came of it, as soon as it is there."""
    with ProcessPoolExecutor(max(1, jobs), mp_context=get_context("fork")) as pool:
        futures = {pool.submit(function, part): part for part in parts}
        for future in as_completed(futures):
            yield futures[future], future.result()
