"""Altered texts of LightGBM models are refused before its compiled parser reads them."""

import os
from random import Random

import numpy as np
import pytest

from foretune.numerics.lightgbm_text import check_text
from tests.hostile.mutations import CELLS, spoilt_bytes

lightgbm = pytest.importorskip("lightgbm")
MUTATIONS = 200


def text_of(kind, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(120, 5))
    y = {"regression": x[:, 0] * x[:, 1], "binary": x[:, 0] > 0}.get(kind, np.arange(120) % 3)
    model = (lightgbm.LGBMRegressor if kind == "regression" else lightgbm.LGBMClassifier)(
        n_estimators=6, num_leaves=7, verbose=-1, n_jobs=1
    )
    return model.fit(x, y).booster_.model_to_string()


def spoilt(rng, text):
    """Bytes that know nothing of the form, or a number of a list made another."""
    if rng.random() < 0.4:
        return spoilt_bytes(rng, text.encode()).decode(errors="replace")
    lines = text.split("\n")
    listed = [i for i, line in enumerate(lines) if "=" in line]
    at = rng.choice(listed)
    name, _, values = lines[at].partition("=")
    parts = values.split(" ")
    place = rng.randrange(len(parts))
    odd = ["-1", "0", "1", "2147483647", "-2147483648", "nan", "1e999", *CELLS[:8]]
    parts[place : place + 1] = rng.choice(([], [parts[place]] * 2, [rng.choice(odd)]))
    lines[at] = f"{name}={' '.join(parts)}"
    return "\n".join(lines)


def survives(text):
    """Whether a child that loads a text and predicts with it ends as it should."""
    child = os.fork()
    if child == 0:
        code = 0
        try:
            booster = lightgbm.Booster(model_str=text)
            booster.predict(np.zeros((3, 5)), num_threads=1)
        except Exception:
            code = 0
        os._exit(code)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("kind", ["regression", "binary", "multiclass"])
def test_texts_of_lightgbm_are_accepted(kind):
    check_text(text_of(kind))


def test_a_constant_model_is_taken():
    x = np.zeros((60, 2))
    model = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1).fit(x, np.arange(60.0))
    check_text(model.booster_.model_to_string())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max_feature_idx=4", "max_feature_idx=400000000"),
        ("num_class=1", "num_class=1000000"),
        ("num_leaves=", "num_leaves=10000000"),
        ("num_cat=0", "num_cat=5"),
        ("is_linear=0", "is_linear=1"),
        ("split_feature=", "split_feature=99999999 "),
        ("left_child=", "left_child=12345 "),
        ("tree_sizes=", "tree_sizes=999999999 "),
        ("end of trees", "end"),
        ("objective=regression", "objective=multiclass num_class:7"),
    ],
)
def test_indices_outside_of_the_arrays_are_refused(old, new):
    text = text_of("regression")
    assert old in text
    with pytest.raises(ValueError, match="text of its booster"):
        check_text(text.replace(old, new, 1))


@pytest.mark.parametrize("kind", ["regression", "multiclass"])
def test_altered_texts_that_are_taken_do_no_harm(kind):
    whole, taken = text_of(kind), 0
    for seed in range(MUTATIONS):
        text = spoilt(Random(f"{kind}:{seed}"), whole)
        try:
            check_text(text)
        except ValueError:
            continue
        taken += 1
        assert survives(text), seed
    assert 0 < taken < MUTATIONS
