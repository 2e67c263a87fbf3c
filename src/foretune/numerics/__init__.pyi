from foretune._base.arrays import (
    Bools as Bools,
    Floats as Floats,
    Ints as Ints,
)
from foretune.numerics.acquisition import (
    expected_improvement as expected_improvement,
    log_of_improvement as log_of_improvement,
)
from foretune.numerics.anchored import (
    LARGEST_GP as LARGEST_GP,
    AnchoredFit as AnchoredFit,
    informative_subset as informative_subset,
)
from foretune.numerics.artifact import (
    load_artifact as load_artifact,
    save_artifact as save_artifact,
)
from foretune.numerics.deep_kernel import (
    Curriculum as Curriculum,
    DeepKernel as DeepKernel,
    Kernel as Kernel,
    Schedule as Schedule,
    fine_tune as fine_tune,
    initial_kernel as initial_kernel,
    meta_train as meta_train,
    schedules_for as schedules_for,
)
from foretune.numerics.gp import (
    GP as GP,
    fit_hyper as fit_hyper,
    negative_log_posterior as negative_log_posterior,
)
from foretune.numerics.hyper import (
    GPHyper as GPHyper,
    hyper_bounds as hyper_bounds,
    prior_mode as prior_mode,
)
from foretune.numerics.lambdamart import (
    Ranker as Ranker,
    relevances as relevances,
)
from foretune.numerics.networks import (
    Layers as Layers,
    apply_relu_layers as apply_relu_layers,
    initial_layers as initial_layers,
)
from foretune.numerics.normalise import (
    keep_losses as keep_losses,
    relative_error_difference as relative_error_difference,
    share_of_better as share_of_better,
)
from foretune.numerics.objectives import (
    pareto_front as pareto_front,
    scalarise as scalarise,
)
from foretune.numerics.training import (
    Layer as Layer,
    advance as advance,
    as_arrays as as_arrays,
    bucket as bucket,
    cache_compilation as cache_compilation,
    jax_layers as jax_layers,
    start_descent as start_descent,
)
from foretune.numerics.transforms import (
    AS_THEY_ARE as AS_THEY_ARE,
    Standardise as Standardise,
    copula_scores as copula_scores,
    standardise as standardise,
)
