"""The methods of this folder, as learners for the registry."""

from foretune.methods.pipeline.layout import Sizes
from foretune.methods.pipeline.learn import DeepPipeLearner
from foretune.methods.pipeline.random_network import RandomNetworkLearner
from foretune.numerics.scores import midrank_scores
from foretune.numerics.transforms import standardise


def deeppipe() -> DeepPipeLearner:
    """Return the learner of DeepPipe with a learnt mean, on scores that keep the best apart."""
    return DeepPipeLearner(Sizes(learns_mean=True), midrank_scores)


def deeppipe_paper() -> DeepPipeLearner:
    """Return the learner of the published DeepPipe: no mean, standardised losses."""
    return DeepPipeLearner(Sizes(), standardise, "foretune-deeppipe-paper")


def deeppipe_ri() -> RandomNetworkLearner:
    """DeepPipe with randomly initialised weights, trained on the target alone.

    Where no past task teaches what is alike, the bias of a second encoder layer pays.
    """
    return RandomNetworkLearner(Sizes(encoder_layers=2))
