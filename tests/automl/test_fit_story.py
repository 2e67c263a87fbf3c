from types import SimpleNamespace

import pytest

from foretune.automl.fit_story import ReportTexts, advice, facts, story
from foretune.automl.plan import FitOptions, make_plan
from foretune.experience import Status
from foretune.experience.trial import Trial
from foretune.tables.target import Task
from tests.automl.samples import mixed_table, table_with_texts


@pytest.mark.parametrize(
    ("opened", "knows", "said"),
    [
        (1, True, "The first trial was a configuration that suited past datasets; the model chose"),
        (2, True, "The first 2 trials were configurations that suited past datasets and complem"),
        (1, False, "The first trial was drawn from the whole space; the model chose"),
        (2, False, "The first 2 trials were spread over the whole space; the model chose"),
    ],
)
def test_the_trials_that_opened_the_search_are_counted(opened, knows, said) -> None:
    trials = [SimpleNamespace(chosen_by="start")] * opened + [SimpleNamespace(chosen_by="model")]
    options = SimpleNamespace(method="gp")
    knowledge = SimpleNamespace(notes=()) if knows else None
    fit = SimpleNamespace(options=options, knowledge=knowledge, trials=trials, relied_on="")
    assert advice(fit)[-1].startswith(said)
    assert advice(fit)[-1].endswith("the model chose the other 1.")


def test_a_text_that_is_missing_is_one_value_however_many_words_there_are() -> None:
    table = table_with_texts(Task.CLASSIFICATION)
    # Of 120 rows, 14 have no text and 18 no number; all have a letter.
    assert table.x.shape[1] == 4
    assert ("missing values", f"{(14 + 18) / 360:.1%}") in facts(table)


def test_pipelines_are_named_by_their_estimators() -> None:
    # It has so little to set that other stages of the pipeline have more.
    options = FitOptions(only=("naive_bayes",), method="random")
    table = mixed_table(Task.CLASSIFICATION)
    plan = make_plan(table, options)
    [config] = plan.space.sample(1, seed=0).dicts()
    trial = Trial(0, config, Status.DONE, values={"log_loss": 0.5}, seconds=1.0)
    fit = SimpleNamespace(
        plan=plan, options=options, knowledge=None, trials=[trial], relied_on="", timings=[]
    )  # fmt: skip
    told = story(fit, table, ReportTexts("a table"))
    assert told.label_of(0) == "naive_bayes"
