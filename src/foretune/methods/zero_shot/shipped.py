"""Portfolios that ship with the package, as data with their source named."""

from importlib.resources import files

from foretune.errors import UsageError
from foretune.methods.zero_shot.portfolio import Portfolio

SHIPPED = ("catboost", "lightgbm", "mlp", "xgboost", "zaml")


def portfolio(name: str) -> Portfolio:
    """The shipped portfolio for an algorithm, such as `xgboost`.

    Example:
        >>> for config in portfolio("lightgbm").configs:
        ...     model = lightgbm.LGBMClassifier(**config)
    """
    if name not in SHIPPED:
        raise UsageError(
            f"a shipped portfolio must be one of {', '.join(SHIPPED)}, but got '{name}': choose "
            "one of them, or build your own from an experience file"
        )
    text = (files("foretune.methods.zero_shot") / "data" / f"{name}.json").read_text("utf-8")
    return Portfolio.from_json(text, name)
