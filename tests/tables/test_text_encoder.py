import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import Ridge

from foretune.tables.text_encoder import MOST_CLASSES, PENALTIES, PLAIN_WORDS, TextEncoder


def words(n=200, d=40, seed=0):
    return (np.random.default_rng(seed).random((n, d)) < 0.2).astype(float)


def scores(encoded, d=40):
    """Without the words that are beside them."""
    return encoded[:, : encoded.shape[1] - min(d, PLAIN_WORDS)]


def test_new_rows_get_what_ridge_on_tf_idf_foretells():
    x = words()
    y = 5.0 + 2.0 * x[:, 0] - x[:, 1]
    found = scores(TextEncoder().fit(x, y).transform(words(seed=1)))[:, 0]
    weigher = TfidfTransformer().fit(x)
    z = (y - y.mean()) / y.std()
    expected = {
        penalty: Ridge(penalty)
        .fit(weigher.transform(x), z)
        .predict(weigher.transform(words(seed=1)))
        for penalty in PENALTIES
    }
    # Without noise the least penalty is the best.
    np.testing.assert_allclose(found, expected[PENALTIES[0]], atol=1e-3)


def test_rows_that_are_learnt_from_get_what_others_foretell():
    x, y = words(), np.random.default_rng(3).normal(size=200)
    own = scores(TextEncoder().fit_transform(x, y))[:, 0]
    new = scores(TextEncoder().fit(x, y).transform(x))[:, 0]
    # There is nothing to learn: a model of its own rows would seem to foretell them.
    assert np.corrcoef(own, y)[0, 1] < 0.1
    assert np.corrcoef(new, y)[0, 1] > np.corrcoef(own, y)[0, 1]
    changed = y.copy()
    changed[7] = 100.0
    assert scores(TextEncoder().fit_transform(x, changed))[7, 0] < 1.0


def test_noise_is_shrunk_by_the_penalty():
    x, noise = words(d=150), np.random.default_rng(4).normal(size=200)
    plain, noisy = 2.0 * x[:, 0], 0.3 * x[:, 0] + noise
    spread = {
        name: scores(TextEncoder().fit(x, y).transform(x), 150).std()
        for name, y in {"plain": plain, "noisy": noisy}.items()
    }
    assert spread["noisy"] < 0.7 * spread["plain"]


@pytest.mark.parametrize(("classes", "columns"), [(1, 1), (2, 1), (3, 3), (30, MOST_CLASSES)])
def test_a_column_a_class_and_one_for_two(classes, columns):
    x = words()
    y = np.arange(200) % classes
    encoder = TextEncoder(classification=True)
    assert scores(encoder.fit_transform(x, y)).shape == (200, columns)
    assert scores(encoder.transform(x[:5])).shape == (5, columns)


def test_classes_are_foretold():
    x = words()
    y = np.where(x[:, 2] == 1, 2, np.where(x[:, 3] == 1, 1, 0))
    found = scores(TextEncoder(classification=True).fit_transform(x, y))
    commonest = np.argsort(-np.bincount(y), kind="stable")
    assert np.mean(commonest[found.argmax(axis=1)] == y) > 0.9


def test_the_most_telling_words_are_kept_as_they_are():
    x = words()
    encoded = TextEncoder().fit_transform(x, x[:, 0])
    np.testing.assert_array_equal(encoded[:, 1:], x[:, :PLAIN_WORDS])


def test_no_text_and_no_known_words_are_the_same_row():
    x = words()
    x[::3] = np.nan
    encoder = TextEncoder().fit(x, np.arange(200.0))
    found = encoder.transform(np.stack([np.full(40, np.nan), np.zeros(40)]))
    np.testing.assert_array_equal(found[0], found[1])
    assert np.isfinite(found).all()
    assert found[0, 0] == encoder.level_[0]


def test_very_few_rows_and_equal_targets():
    x = words(n=3)
    assert np.isfinite(TextEncoder().fit_transform(x, np.array([1.0, 2.0, 4.0]))).all()
    assert np.isfinite(TextEncoder().fit_transform(x, np.ones(3))).all()
