"""The methods of this room."""

from foretune.methods.ranking.learn import RandomLearner, RankingLearner
from foretune.methods.ranking.model import RankingSettings
from foretune.methods.ranking.tuning import FineTuning


def dre() -> RankingLearner:
    """Deep Ranking Ensembles, meta-learnt and fine-tuned."""
    return RankingLearner("foretune-dre", RankingSettings(FineTuning(variance=0.1)))


def dre_ri() -> RandomLearner:
    """The same from random initial weights."""
    return RandomLearner("foretune-dre-ri", RankingSettings(FineTuning(variance=0.3, steps=10)))
