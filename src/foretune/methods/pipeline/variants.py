"""The methods of this room, as learners for the registry."""

from foretune.methods.pipeline.layout import Sizes
from foretune.methods.pipeline.learn import DeepPipeLearner
from foretune.methods.pipeline.random_network import RandomNetworkLearner
from foretune.numerics.scores import midrank_scores
from foretune.numerics.transforms import standardise


def deeppipe() -> DeepPipeLearner:
    """DeepPipe with a learnt mean, on scores that keep the best of a task apart."""
    return DeepPipeLearner(Sizes(learns_mean=True), midrank_scores)


def deeppipe_paper() -> DeepPipeLearner:
    """DeepPipe as published: no mean, standardised losses, the kernel tuned at every trial."""
    return DeepPipeLearner(Sizes(), standardise, "foretune-deeppipe-paper")


def deeppipe_ri() -> RandomNetworkLearner:
    """DeepPipe with randomly initialised weights, trained on the target alone.

    Where no past task teaches what is alike, the bias of a second encoder layer pays.
    """
    return RandomNetworkLearner(Sizes(encoder_layers=2))
