"""What the fuzz found: each of these inputs ended in an uncaught error once."""

import numpy as np
import pandas as pd
import pytest

from foretune.automl.estimators.fitted_pipeline import Member
from foretune.errors import UsageError
from foretune.tables import infer_schema


class OtherClasses:
    """A pipeline of an altered model file, which predicts classes that the model does not have."""

    def __init__(self, code: int) -> None:
        self.code = code

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), self.code)


@pytest.mark.parametrize("code", [3, -1, 67_108_864])
def test_a_class_that_a_model_does_not_have_is_refused(code: int) -> None:
    with pytest.raises(UsageError) as refused:
        Member({}, OtherClasses(code), (0, 1, 2)).predict(np.zeros((2, 1)))
    assert refused.value.rule == "unknown-class-predicted"


def test_a_number_of_hundreds_of_digits_beside_others_is_no_reason_to_fail() -> None:
    column = pd.Series([10**400, 5, 7, 9] * 5, dtype=object)
    assert infer_schema(pd.DataFrame({"a": column, "b": range(20)})).columns
