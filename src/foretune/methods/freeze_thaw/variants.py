"""The method and its ablations."""

from foretune.methods.freeze_thaw.learn import FreezeThawLearner, FreezeThawSettings


def freeze_thaw() -> FreezeThawLearner:
    """Return the method."""
    return FreezeThawLearner()


def without_configs() -> FreezeThawLearner:
    """Return the method without what past tasks say about configurations."""
    return FreezeThawLearner(FreezeThawSettings(configs=False))


def without_curves() -> FreezeThawLearner:
    """Return the method without what past tasks say about curves."""
    return FreezeThawLearner(FreezeThawSettings(curves=False))
