from foretune.errors import MethodError
from foretune.methods.contracts import Target
from foretune.search import Design, Method, Optimizer, method
from foretune.space import Space
from foretune.testing import problem
from foretune_lab.baselines.warm_start import warm_started_gp
from tests.methods.baselines.examples import SPACE, mean_regret, small_experience
from tests.refusals import refuses

WS_GP = Method(
    "ws-gp", "warm start", warm_started_gp, design=Design("random", 0), needs_experience=True
)


def test_the_search_opens_with_the_best_of_each_past_task():
    experience = small_experience()
    prior = WS_GP.learn(experience, seed=0)
    optimizer = Optimizer(Target(SPACE), WS_GP, prior)
    suggestions = optimizer.ask(2)
    assert [s.config for s in suggestions] == experience.configs.take([1, 3]).dicts()
    assert [s.reason for s in suggestions] == ["start", "start"]


def test_another_space_is_refused():
    prior = WS_GP.learn(small_experience(), seed=0)
    target = Target(Space.of({"width": (0.0, 10.0)}))
    for use in (prior.opening, prior.surrogate):
        with refuses("prior-of-another-space", kind=MethodError):
            use(target)


def test_it_beats_random_search_on_related_tasks():
    prior = WS_GP.learn(problem("flat").experience, seed=0)
    random = method("random")
    ours = mean_regret(WS_GP, prior, trials=10, seeds=3)
    assert ours < 0.5 * mean_regret(random, random.learn(None, seed=0), trials=10, seeds=3)
