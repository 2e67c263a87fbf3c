"""The linear model of plain NumPy, against scikit-learn and against its definition."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss

from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.estimators.plain_linear import (
    PENALTIES,
    ColumnBasis,
    constant_model,
    fit_plain_linear,
    from_plain,
    to_plain,
)
from foretune.automl.final_model.model import Model
from foretune.automl.plan import FitOptions, make_plan
from foretune.errors import UsageError
from foretune.tables.target import Task
from tests.automl.samples import mixed_frame, mixed_table


def rows(n: int = 60, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers, of which two and a bend tell the target."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, 2.0 * x[:, 0] + np.abs(x[:, 1]) + 0.3 * rng.normal(size=n)


NUMBERS = np.zeros(3, dtype=np.bool_)


def standardised(basis: ColumnBasis, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the basis with weighted mean 0 and spread 1, as the penalty means it."""
    z = basis(x)
    z = z - w @ z
    return z / np.sqrt(w @ z**2)


def left_out_errors(z: np.ndarray, y: np.ndarray, w: np.ndarray, penalty: float) -> float:
    """Return the weighted squared error of rows that each were left out."""
    errors = []
    for row in range(len(y)):
        others = np.arange(len(y)) != row
        # scikit-learn's penalty is for the sum over rows; ours is for their weighted mean.
        model = Ridge(penalty).fit(z[others], y[others], sample_weight=w[others])
        errors.append(w[row] * (model.predict(z[[row]])[0] - y[row]) ** 2)
    return float(np.sum(errors))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [3, 30])
def test_it_is_the_ridge_regression_whose_penalty_has_the_least_error(
    d: int, weighted: bool
) -> None:
    """Also with more columns than rows. An eigenvalue beside the mean counts as its own row."""
    x, y = rows(25, d)
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    fitted = fit_plain_linear(x, y, np.zeros(d, dtype=np.bool_), weights=w if weighted else None)
    w /= w.sum()
    z = standardised(fitted.basis, x, w)
    found = {each: Ridge(each).fit(z, y, sample_weight=w).predict(z) for each in PENALTIES}
    near = {each: np.abs(fitted.predict(x) - of).max() for each, of in found.items()}
    chosen = min(near, key=near.__getitem__)
    assert near[chosen] < 1e-6
    errors = {each: left_out_errors(z, y, w, each) for each in {chosen, *PENALTIES[::4]}}
    # Where rows decide their own predictions, a larger penalty than the best may be chosen.
    assert errors[chosen] < (1.02 if d == 3 else 1.1) * min(errors.values())


def test_classes_have_the_most_probable_steepness() -> None:
    x, y = rows(200)
    codes = np.digitize(y, np.quantile(y, [0.3, 0.7])).astype(np.float64)
    model = fit_plain_linear(x, codes, NUMBERS, classes=3)
    new, later = rows(2000, seed=1)
    truth = np.digitize(later, np.quantile(y, [0.3, 0.7]))
    guess = log_loss(truth, np.tile(np.bincount(codes.astype(int)) / 200, (2000, 1)))
    score = log_loss(truth, model.predict_proba(new))
    assert score < 0.6 * guess

    def loss(factor: float) -> float:
        scores = factor * np.log(model.predict_proba(new))
        shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        return float(log_loss(truth, shares))

    best = minimize_scalar(loss, bounds=(0.2, 5.0), method="bounded")
    assert 0.8 < best.x < 1.25  # neither too sure nor not sure enough, on new rows
    np.testing.assert_array_equal(model.predict(new), model.predict_proba(new).argmax(axis=1))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, 0.0])
def test_odd_numbers_do_not_break_it(value: float) -> None:
    x, y = rows()
    x[::7, 0] = value
    x[:, 2] = value
    with np.errstate(invalid="ignore"):
        model = fit_plain_linear(x, y, NUMBERS)
        assert np.isfinite(model.predict(x)).all()
        assert np.isfinite(model.predict(np.full((2, 3), value))).all()


def test_categories_and_missing_values_are_learnt() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 4, 300), rng.normal(size=300)]).astype(float)
    x[rng.random(300) < 0.3, 1] = np.nan
    y = np.array([5.0, -1.0, 2.0, 0.0])[x[:, 0].astype(int)] + 3.0 * np.isnan(x[:, 1])
    model = fit_plain_linear(x, y, np.array([True, False]))
    np.testing.assert_allclose(model.predict(x), y, atol=0.1)
    unknown = model.predict(np.array([[9.0, np.nan], [np.nan, 0.0]]))
    assert np.isfinite(unknown).all()


@pytest.mark.parametrize("task", list(Task))
def test_a_model_file_of_it_is_opened_without_other_libraries(task: Task, tmp_path: Path) -> None:
    plan = make_plan(mixed_table(task), FitOptions())
    table, target = plan.table, "class" if task is Task.CLASSIFICATION else "amount"
    classes = len(table.classes)
    member = Member(
        {}, fit_plain_linear(table.x, table.y, table.categorical, classes=classes),
        tuple(range(classes)),
    )  # fmt: skip
    model = Model.of(table, [member, member], target=target, metric=plan.metric.name)
    model.save(tmp_path / "m")
    frame = mixed_frame(20, seed=4)
    np.testing.assert_array_equal(Model.open(tmp_path / "m").predict(frame), model.predict(frame))
    code = (
        "import sys, foretune.automl.job, foretune.cli.fit_screen; "
        "from foretune.automl.final_model.model import Model; "
        f"Model.open({str(tmp_path / 'm')!r}); "
        "print([n for n in ('sklearn', 'scipy', 'skops', 'ConfigSpace') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


CHANGES = {
    "width": [-1, 1, 2.0, "3", None],
    "numbers": [[0, 1, 3], [0, 1, -1], [0, 1, 0.5], [0], "x", None],
    "centre": [[0.0, 0.0, float("inf")], [0.0], [[0.0] * 3]],
    "scale": [[0.0, 1.0, 1.0], [-1.0, 1.0, 1.0], ["a", 1, 1]],
    "bends": [[[0.0] * 3] * 40, [[0.0] * 2], 1.0],
    "gaps": [[3], [-1]],
    "coded": [[0], [7]],
    "level": [[0.0], [0.0] * 4, 0.0],
    "slopes": [[[0.0] * 3], [], [[1e999] * 3] * 12],
    "is_classifier": [False, 1],
}


@pytest.mark.parametrize("part", CHANGES)
def test_an_altered_model_is_refused(part: str, tmp_path: Path) -> None:
    x, y = rows()
    codes = np.digitize(y, [-1.0, 1.0]).astype(np.float64)
    plain = to_plain(fit_plain_linear(x, codes, NUMBERS, classes=3))
    again = from_plain(json.loads(json.dumps(plain)), classes=3)
    np.testing.assert_array_equal(
        again.predict_proba(x), from_plain(plain, classes=3).predict_proba(x)
    )
    for value in CHANGES[part]:
        with pytest.raises((ValueError, TypeError)):
            from_plain({**plain, part: value}, classes=3)
    with pytest.raises(ValueError):  # noqa: PT011
        from_plain(plain, classes=2)


def test_a_file_with_an_altered_model_is_refused_as_a_whole(tmp_path: Path) -> None:
    table = mixed_table(Task.REGRESSION)
    member = Member({}, constant_model(table.x.shape[1] + 1, np.array([1.0]), is_classifier=False))
    Model.of(table, [member], target="amount", metric="r2").save(tmp_path / "m")
    with pytest.raises(UsageError) as refused:
        Model.open(tmp_path / "m")
    assert refused.value.rule == "unusable-model"


def test_a_table_with_one_class_and_one_without_numbers_work() -> None:
    x, _ = rows(20)
    one = fit_plain_linear(x, np.zeros(20), NUMBERS, classes=1)
    np.testing.assert_array_equal(one.predict_proba(x), np.ones((20, 1)))
    codes = np.tile([[0.0], [1.0]], (10, 1))
    only = fit_plain_linear(codes, codes[:, 0], np.array([True]), classes=2)
    np.testing.assert_array_equal(only.predict(codes), codes[:, 0])
    empty = from_plain(to_plain(only), classes=2)
    np.testing.assert_array_equal(empty.predict(codes), codes[:, 0])
