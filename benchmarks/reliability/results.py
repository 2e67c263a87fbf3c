"""What a trial may return, through every executor: the same answer from each.

    python benchmarks/reliability/results.py [--large 500]

Each result is returned on its own and as the metric of a mapping, evaluated in this process, in
worker processes and, where Ray is installed, on Ray. It must be a value or refused for the same
reason everywhere.
"""

import argparse
import re
import sys
import time
from importlib.util import find_spec
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from rows import Row, peak_mb  # noqa: E402
from tests.run.test_objectives import USELESS, Hostile  # noqa: E402

from foretune.experience import Metric, Status  # noqa: E402
from foretune.run.executor import Limits  # noqa: E402
from foretune.run.inline import InlineExecutor  # noqa: E402
from foretune.run.pool import ProcessPool  # noqa: E402
from foretune.run.trial_results import NamedFunction, ResultError, check_result  # noqa: E402

ERROR = Metric("error")
ADDRESS = re.compile(" at 0x[0-9a-f]+")
VALUES = {"number": 0.5, "hostile number": Hostile(0.5), "small whole number": 3}


def result_of(config):
    """The function that is tuned: found by name, as in `foretune tune results:result_of`."""
    kind = config["kind"]
    if kind == "huge":
        found = b"x" * config["size"]
    elif kind == "huge mapping":
        found = {f"n{n}": n for n in range(1_000_000)}
    else:
        found = VALUES[kind] if kind in VALUES else USELESS[kind]()
    return {"error": found} if config["mapping"] else found


def executors(function):
    limits = Limits(wall_seconds=300.0)
    yield "inline", lambda: InlineExecutor(function)
    yield "processes", lambda: ProcessPool(function, workers=2, limits=limits)
    if find_spec("ray") is not None:
        from foretune.run.ray_pool import RayPool

        yield "ray", lambda: RayPool(function, workers=2, limits=limits)


def answer(outcome):
    """The value, or why there is none, as a study records it but without addresses in memory."""
    if outcome.status is not Status.DONE:
        return ADDRESS.sub("", outcome.reason.removeprefix("ResultError: "))
    try:
        return check_result(outcome.result, [ERROR]).values["error"]
    except ResultError as error:
        return ADDRESS.sub("", str(error))


def answers(executor, jobs):
    with executor as running:
        keys = {running.submit(job): place for place, job in enumerate(jobs)}
        found = {}
        while batch := running.results():
            for outcome in batch:
                assert keys[outcome.key] not in found, "answered twice"
                found[keys[outcome.key]] = answer(outcome)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", type=int, default=500, help="MiB of the largest result")
    arguments = parser.parse_args()
    kinds = [*VALUES, *USELESS, "huge", "huge mapping"]
    size = arguments.large * 2**20
    jobs = [{"kind": kind, "mapping": m, "size": size} for kind in kinds for m in (False, True)]
    function = NamedFunction("results:result_of", Path(__file__).parent)
    began, found = time.monotonic(), {}
    for name, make in executors(function):
        found[name] = answers(make(), jobs)
    lost = wrong = refused = 0
    print("| result | in a mapping | " + " | ".join(found) + " |")
    for place, job in enumerate(jobs):
        each = [found[name].get(place) for name in found]
        lost += sum(one is None for one in each)
        is_value = job["kind"] in VALUES
        right = each.count(each[0]) == len(each) and isinstance(each[0], float) == is_value
        wrong += not right
        refused += not is_value
        cells = " | ".join(f"{one!s:.70}" for one in each)
        print(f"| {job['kind']} | {job['mapping']} | {cells} |")
    Row(
        f"results through {', '.join(found)}",
        len(jobs) * len(found),
        lost=lost,
        wrong=wrong,
        refused=refused,
        longest_s=time.monotonic() - began,
        peak_mb=peak_mb(),
    ).print()
    sys.exit(bool(lost or wrong))


if __name__ == "__main__":
    main()
