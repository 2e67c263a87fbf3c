"""Portfolios that come with the package. Their files name the source."""

from importlib.resources import files

from foretune.errors import UsageError
from foretune.methods.zero_shot.portfolio import Portfolio

SHIPPED = ("catboost", "lightgbm", "mlp", "xgboost", "zaml")


def portfolio(name: str) -> Portfolio:
    """Return the shipped portfolio for an algorithm, such as `xgboost`.

    Example:
        >>> for config in portfolio("lightgbm").configs:
        ...     model = lightgbm.LGBMClassifier(**config)
    """
    if name not in SHIPPED:
        raise UsageError(
            f"a shipped portfolio must be one of {', '.join(SHIPPED)}, but got '{name}': choose "
            "one of them, or build your own from an experience file",
            rule="unknown-portfolio",
            field="name",
            value=name,
        )
    text = (files("foretune.methods.zero_shot") / "data" / f"{name}.json").read_text("utf-8")
    return Portfolio.from_json(text, name)
