"""Averages the pipelines that learnt from the folds of one configuration."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune.automl.estimators.fitted_pipeline import Member


class FoldAverage:
    """Predicts the mean of several fitted pipelines.

    It predicts numbers, or probabilities of the classes 0, 1, ..., and a model file can hold it.
    """

    def __init__(
        self, pipelines: Sequence[Any], places: Sequence[Sequence[int]], classes: int, columns: int
    ) -> None:
        """Make the average of pipelines for matrices with so many columns.

        places: for each pipeline, the classes that it has learnt; empty lists for numbers. A
        pipeline with one class need not be fitted. classes: how many there are; 0 for numbers.
        """
        self.pipelines = list(pipelines)
        self.places = [list(each) for each in places]
        self.classes = classes
        self.n_features_in_ = columns

    def predict(self, x: Floats) -> Floats:
        """Return the mean numbers, or the codes of the most probable classes, (n,)."""
        if self.classes:
            codes: Floats = self.predict_proba(x).argmax(axis=1).astype(np.float64)
            return codes
        total = np.zeros(len(x))
        for each in self.pipelines:
            total += np.asarray(each.predict(x)).ravel()
        mean: Floats = total / len(self.pipelines)
        return mean

    def predict_proba(self, x: Floats) -> Floats:
        """Return the mean probabilities (n, classes)."""
        total = np.zeros((len(x), self.classes))
        for pipeline, places in zip(self.pipelines, self.places, strict=True):
            total += _probabilities(pipeline, places, self.classes, x)
        mean: Floats = total / len(self.pipelines)
        return mean


def average_members(members: Sequence[Member], columns: int) -> Member:
    """Return the average of the pipelines of one configuration, as a pipeline of its own."""
    known = sorted({code for each in members for code in each.known})
    place = {code: number for number, code in enumerate(known)}
    places = [[place[code] for code in each.known] for each in members]
    average = FoldAverage([each.pipeline for each in members], places, len(known), columns)
    return Member(members[0].config, average, tuple(known))


def _probabilities(pipeline: Any, places: list[int], classes: int, x: Floats) -> Floats:
    """Return the probabilities (n, classes) of one pipeline; a class it does not know has 0."""
    found = np.zeros((len(x), classes))
    if len(places) == 1:
        found[:, places[0]] = 1.0
    elif hasattr(pipeline, "predict_proba"):
        found[:, places] = pipeline.predict_proba(x)
    else:
        codes = np.asarray(pipeline.predict(x)).ravel().astype(np.int64)
        found[np.arange(len(x)), np.array(places)[codes]] = 1.0
    return found
