"""Spaces that the tests of this room share."""

from foretune.space import Space

PIPELINE = Space.of(
    {
        "scaler": {"none": {}, "standard": {}, "quantile": {"quantiles": (10, 1000, "log")}},
        "model": {
            "svm": {"C": (1e-3, 1e3, "log"), "kernel": ["rbf", "poly"]},
            "forest": {"trees": (10, 500, "log"), "share": (0.1, 1.0)},
        },
        "budget": (1, 10),
    }
)
CASH = Space.of({"model": {"svm": {"C": (1e-3, 1e3, "log")}, "bayes": {}, "dummy": {}}})
FLAT = Space.of({"a": (0.0, 1.0), "b": ["x", "y", "z"]})
