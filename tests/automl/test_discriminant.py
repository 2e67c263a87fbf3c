import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from foretune.automl.estimators.discriminant import QuadraticDiscriminant


@pytest.mark.parametrize("reg_param", [1e-5, 0.1, 1.0])
def test_it_predicts_as_scikit_learn_does(reg_param):
    x, y = load_iris(return_X_y=True)
    ours = QuadraticDiscriminant(reg_param).fit(x[::2], y[::2])
    theirs = QuadraticDiscriminantAnalysis(reg_param=reg_param).fit(x[::2], y[::2])
    # Its versions divide the covariance by n or by n - 1.
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), atol=0.03)
    assert ours.predict(x).tolist() == theirs.predict(x).tolist()


def test_classes_with_fewer_rows_than_columns():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 20)), np.array(list("aaaaabbbbbbc"))
    x[y == "b"] += 3.0
    model = QuadraticDiscriminant(1e-2).fit(x, y)
    assert model.predict(x).tolist() == y.tolist()
    assert np.isfinite(model.predict_proba(x)).all()
