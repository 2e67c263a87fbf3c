from types import SimpleNamespace

import pytest

from foretune.automl.telling import advice


@pytest.mark.parametrize(
    ("opened", "said"),
    [
        (1, "The first trial was a configuration that suited past datasets; the model chose"),
        (2, "The first 2 trials were configurations that suited past datasets and complement"),
    ],
)
def test_the_trials_that_opened_the_search_are_counted(opened, said) -> None:
    trials = [SimpleNamespace(chosen_by="start")] * opened + [SimpleNamespace(chosen_by="model")]
    wishes = SimpleNamespace(method="gp")
    fit = SimpleNamespace(wishes=wishes, knowledge=None, trials=trials, relied_on="")
    assert advice(fit)[-1].startswith(said)
    assert advice(fit)[-1].endswith("the model chose the other 1.")
