import numpy as np

from foretune._base.progress import SILENT
from foretune.errors import MethodError
from foretune.methods.contracts import Target
from foretune.methods.rgpe.source_processes import SourceLimits, fit_sources
from foretune.numerics.transforms import standardise
from foretune.space import Space
from foretune.testing import problem
from foretune_lab.baselines.tst import tst
from tests.methods.baselines.examples import small_experience
from tests.refusals import refuses


def fitted(limits, seeds=(0,)):
    return fit_sources(problem("flat").experience, standardise, limits, seeds, SILENT)


def test_a_long_past_task_is_subsampled():
    [sources] = fitted(SourceLimits(evaluations=20, fitted=10))
    assert [len(process.x) for process in sources.processes] == [20] * 5


def test_many_past_tasks_are_subsampled():
    some, same, other = fitted(SourceLimits(evaluations=20, fitted=10, tasks=2), (0, 0, 4))
    assert [len(sources.processes) for sources in (some, same, other)] == [2] * 3
    assert np.array_equal(some.processes[1].y, same.processes[1].y)
    assert not np.array_equal(some.processes[1].y, other.processes[1].y)


def test_shared_parts_of_seeds_are_fitted_once():
    all_of_it = SourceLimits(evaluations=10_000, fitted=10_000)
    first, second = fit_sources(small_experience(), standardise, all_of_it, (0, 1), SILENT)
    assert first.processes[2] is second.processes[2]


def test_choices_of_one_hyperparameter_share_a_lengthscale():
    experience = small_experience()
    [sources] = fit_sources(experience, standardise, SourceLimits(100, 100), (0,), SILENT)
    groups = experience.space.column_groups
    for process in sources.processes:
        scales = process.hyper.log_lengthscales
        assert all(np.ptp(scales[groups == group]) == 0.0 for group in np.unique(groups))
        assert len(np.unique(scales)) == len(np.unique(groups)) < len(groups)


def test_learning_many_seeds_is_learning_each():
    experience = problem("flat").experience
    learner = tst()
    for seed, prior in zip(
        (3, 5), learner.learn_many(experience, (3, 5), progress=SILENT), strict=True
    ):
        alone = learner.learn(experience, seed=seed, progress=SILENT)
        for one, other in zip(prior.sources.processes, alone.sources.processes, strict=True):
            np.testing.assert_array_equal(one.x, other.x)
            np.testing.assert_array_equal(one.alpha, other.alpha)


def test_a_mean_alone_is_that_of_the_belief_and_the_pools_is_remembered():
    flat = problem("flat")
    [sources] = fitted(SourceLimits(evaluations=30, fitted=10))
    voices = sources.about(flat.target(pool=True))
    np.testing.assert_allclose(
        voices.means[1](flat.pool), voices.beliefs[1](flat.pool).mean, atol=1e-9
    )
    assert voices.means[1](flat.pool) is voices.means[1](flat.pool)


def test_another_space_is_refused():
    [sources] = fitted(SourceLimits(evaluations=20, fitted=10))
    with refuses("prior-of-another-space", kind=MethodError):
        sources.about(Target(Space.of({"width": (0.0, 10.0)})))
