"""The methods of this room."""

from foretune.methods.latent.learn import LatentLearner, UntrainedLearner


def latent_cash() -> LatentLearner:
    """The paper's method: the best of many pre-trained embeddings."""
    return LatentLearner("foretune-latent-cash")


def latent_cash_first() -> LatentLearner:
    """The choice of the paper: the source that the ranking model puts first, and no other."""
    return LatentLearner("foretune-latent-cash-first", one_source=True)


def latent_cash_random() -> LatentLearner:
    """The ablation of section 5.3 without a ranking model: one source at random."""
    return LatentLearner("foretune-latent-cash-random", most_sources=1)


def latent_cash_ri() -> UntrainedLearner:
    """The ablation of section 5.3 without pre-training."""
    return UntrainedLearner("foretune-latent-cash-ri")
