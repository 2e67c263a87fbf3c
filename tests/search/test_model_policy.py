"""A search whose model of curves decides which trial goes on."""

import math

import numpy as np
import pytest

from foretune._base.progress import SILENT
from foretune.experience import Status
from foretune.methods.contracts import Target
from foretune.methods.stopping import Decision, learn_steps
from foretune.methods.stopping.model_steps import ModelSteps
from foretune.search import Optimizer, Suggestion, Told, method
from tests.methods.freeze_thaw.curves import LAST, SPACE, losses_of, past
from tests.refusals import refuses

EXPERIENCE = past(tasks=4, configs=40)
POOL = SPACE.sample(80, seed=7)  # Candidates of a pool cost little.
LEARNT = {
    name: method(name).learn(EXPERIENCE, seed=0, progress=SILENT) for name in ("freeze-thaw",)
}


def optimizer(
    name="freeze-thaw", objectives=("loss",), prior=None, pool=None, **steps
) -> Optimizer:
    chosen = method(name)
    prior = LEARNT[name] if prior is None else prior
    return Optimizer(
        Target(SPACE, objectives, pool), chosen, prior, seed=2, policy=ModelSteps(1, LAST, **steps)
    )


def curve_of(config) -> np.ndarray:
    return losses_of(np.array([[config["rate"], config["size"]]]), 0.04, 3.0, 1.0)[0]


def run(tuner: Optimizer, cost: int, *, workers: int = 1, seed: int = 0):
    """Spend `cost` steps with workers whose reports come in any order; return the decisions."""
    rng = np.random.default_rng(seed)
    running: list[tuple[Suggestion, int]] = []
    decisions, best = [], math.inf
    while cost > 0:
        while len(running) < workers:
            suggestion = tuner.ask()[0]
            assert suggestion.id not in {each.id for each, _ in running}
            running.append((suggestion, int(suggestion.resumed_from or 0)))
        place = int(rng.integers(len(running)))
        suggestion, step = running.pop(place)
        step, cost = step + 1, cost - 1
        loss = float(curve_of(suggestion.config)[step - 1])
        best = min(best, loss)
        decided = tuner.tell_step(suggestion.id, step, loss)
        decisions.append((suggestion.id, step, decided))
        if step == LAST:
            tuner.tell([Told(loss, id=suggestion.id)])
        elif decided.decision is Decision.CONTINUE:
            running.append((suggestion, step))
        elif decided.decision is Decision.STOP:
            tuner.tell([Told(loss, id=suggestion.id, status=Status.STOPPED)])
    return decisions, best


def test_trials_pause_at_doubled_steps_and_a_good_one_is_found_early():
    decisions, best = run(optimizer(), 5 * LAST)
    paused = {step for _, step, decided in decisions if decided.decision is Decision.PAUSE}
    assert paused <= {1, 2, 4, 8}
    lowest = min(curve_of({"rate": a, "size": 0.2})[-1] for a in np.linspace(0, 1, 101))
    assert best < lowest + 0.05
    reasons = {decided.reason for *_, decided in decisions if decided.reason}
    assert any("predicted to end at" in reason and "±" in reason for reason in reasons)


def test_a_search_that_is_told_again_decides_the_same():
    first, second = optimizer(), optimizer()
    decisions, _ = run(first, 40)
    known = {}
    for id_, step, decided in decisions:
        if id_ not in known:
            entry = first.racing.config(id_).dicts()[0]
            second.assume_pending([Suggestion(id_, entry, "again")])
            known[id_] = entry
        elif second.racing.race[id_].status is Status.PAUSED:
            second.racing.move(id_, Status.RUNNING)
        loss = float(curve_of(known[id_])[step - 1])
        assert second.tell_step(id_, step, loss).decision is decided.decision
        if step == LAST:
            second.tell([Told(loss, id=id_)])
    assert second.ask()[0].config == first.ask()[0].config


@pytest.mark.parametrize("workers", [4, 16])
def test_workers_get_different_trials(workers):
    tuner = optimizer(pool=POOL)
    decisions, best = run(tuner, 5 * workers, workers=workers)
    assert len({id_ for id_, *_ in decisions}) >= workers
    assert math.isfinite(best)


def test_a_trial_that_diverges_is_stopped():
    tuner = optimizer()
    suggestion = tuner.ask()[0]
    decided = tuner.tell_step(suggestion.id, 1, math.nan)
    assert decided.decision is Decision.STOP
    tuner.tell([Told(math.nan, id=suggestion.id, status=Status.FAILED)])
    assert tuner.ask()[0].config != suggestion.config


def test_the_first_trial_runs_to_its_end_if_nobody_knows_the_last_step():
    chosen = method("freeze-thaw")
    tuner = Optimizer(
        Target(SPACE), chosen, chosen.learn(None, seed=0), seed=0, policy=learn_steps("model")
    )
    suggestion = tuner.ask()[0]
    for step in range(1, LAST + 1):
        decided = tuner.tell_step(suggestion.id, step, 1.0 / step)
        assert decided.decision is Decision.CONTINUE
    tuner.tell([Told(1.0 / LAST, id=suggestion.id)])
    assert tuner.racing.policy.steps(tuner.racing.race).last == LAST


def test_two_objectives_widen_the_front():
    chosen = method("freeze-thaw")
    tuner = optimizer(objectives=("loss", "seconds"), prior=chosen.learn(None, seed=0), pool=POOL)
    seen = []
    for _ in range(40):
        suggestion = tuner.ask()[0]
        step = int(suggestion.resumed_from or 0)
        while True:
            step += 1
            losses = (float(curve_of(suggestion.config)[step - 1]), suggestion.config["rate"])
            decided = tuner.tell_step(suggestion.id, step, losses)
            if step == LAST:
                tuner.tell([Told(losses, id=suggestion.id)])
                seen.append(losses)
            if step == LAST or decided.decision is not Decision.CONTINUE:
                break
    assert len(tuner.front) >= 2, seen


def test_auto_asks_its_model_of_curves():
    chosen = method("auto")
    tuner = optimizer("auto", prior=chosen.learn(None, seed=0), pool=POOL)
    decisions, _ = run(tuner, 12)
    assert any(decided.decision is Decision.PAUSE for *_, decided in decisions)
    assert chosen.decides_steps(EXPERIENCE)
    assert not chosen.decides_steps(None)
    assert method("freeze-thaw").decides_steps(None)


def test_a_method_without_a_model_of_curves_is_refused():
    with refuses("no-model-of-curves", field="policy"):
        optimizer("gp", prior=method("gp").learn(None, seed=0))
