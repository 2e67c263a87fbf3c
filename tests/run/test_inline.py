import itertools

import pytest

from foretune.run.inline import InlineExecutor


def ticking(step: float):
    """A clock that goes on by so much whenever somebody looks at it."""
    ticks = itertools.count()
    return lambda: step * next(ticks)


@pytest.mark.parametrize(("of_all_threads", "on_the_clock"), [(32.0, 2.0), (2.0, 32.0)])
def test_the_work_of_many_threads_takes_what_it_takes_on_the_clock(
    of_all_threads: float, on_the_clock: float
) -> None:
    """But what others make it wait for does not count."""
    clocks = {"clock": ticking(on_the_clock), "cpu_clock": ticking(of_all_threads)}
    with InlineExecutor(str, **clocks) as executor:
        executor.submit(1)
        (outcome,) = executor.results()
    assert (outcome.result, outcome.seconds) == ("1", 2.0)
