"""The methods of this room, as learners for the registry."""

from foretune.methods.pipeline.layout import Sizes
from foretune.methods.pipeline.learn import DeepPipeLearner
from foretune.methods.pipeline.random_network import RandomNetworkLearner
from foretune.numerics.transforms import standardise


def deeppipe() -> DeepPipeLearner:
    """DeepPipe, meta-trained."""
    return DeepPipeLearner(Sizes(), standardise, standardise)


def deeppipe_ri() -> RandomNetworkLearner:
    """DeepPipe with randomly initialised weights, trained on the target alone."""
    return RandomNetworkLearner(Sizes())
