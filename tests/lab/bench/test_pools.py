import numpy as np

from foretune.experience import Direction, Experience, Metric
from foretune_lab.bench.metrics import random_search_minimum
from foretune_lab.bench.pools import PoolFacts, facts_of, pool_of
from tests.lab.bench.tables import SPACE

NAN = np.nan


def recorded(values, config_index, fidelity=None, direction=Direction.MIN):
    return Experience.build(
        SPACE,
        [Metric("error", direction)],
        ["one"],
        task_index=np.zeros(len(values), dtype=int),
        configs=SPACE.encode([{"rate": rate, "kind": "a"} for rate in (0.1, 0.2, 0.3)]),
        config_index=config_index,
        values=np.array(values, dtype=float)[:, None],
        fidelity=fidelity,
    )


def losses_by_rate(pool):
    rates = [config["rate"] for config in pool.configs.dicts()]
    return dict(zip(rates, pool.losses[:, 0].tolist(), strict=True))


def test_repeated_records_count_once_with_the_mean_of_their_successes():
    pool = pool_of(recorded([1.0, 3.0, NAN, 5.0, NAN], [0, 0, 0, 1, 2]), "one")
    np.testing.assert_equal(losses_by_rate(pool), {0.1: 2.0, 0.2: 5.0, 0.3: NAN})


def test_the_highest_fidelity_that_succeeded_counts():
    values, fidelity = [9.0, 4.0, 2.0, 7.0, NAN], [1, 3, 3, 1, 3]
    pool = pool_of(recorded(values, [0, 0, 0, 1, 1], fidelity), "one")
    assert losses_by_rate(pool) == {0.1: 3.0, 0.2: 7.0}


def test_a_maximised_metric_is_turned():
    pool = pool_of(recorded([0.9, 0.7], [0, 1], direction=Direction.MAX), "one")
    assert losses_by_rate(pool) == {0.1: -0.9, 0.2: -0.7}


def test_facts_of_a_pool_survive_json_unchanged():
    pool = pool_of(recorded([4.0, 1.0, NAN], [0, 1, 2]), "one")
    facts = PoolFacts.from_dict(facts_of(pool, 2).to_dict())
    assert (facts.size, facts.low, facts.high) == (3, 1.0, 4.0)
    np.testing.assert_array_equal(facts.random, random_search_minimum(pool.losses[:, 0], 2))
    np.testing.assert_array_equal(facts.front, [[1.0]])
    np.testing.assert_array_equal(facts.reference, [4.0])
