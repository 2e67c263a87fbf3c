from foretune.methods.contracts import (
    Learner as Learner,
    Observations as Observations,
    Posterior as Posterior,
    Prediction as Prediction,
    Prior as Prior,
    Region as Region,
    Surrogate as Surrogate,
    Target as Target,
)
from foretune.methods.forest.forest import ForestSurrogate as ForestSurrogate
from foretune.methods.gp.gaussian_process import (
    GaussianProcessSurrogate as GaussianProcessSurrogate,
)
from foretune.methods.past_data import (
    CachedOnPool as CachedOnPool,
    Catalogue as Catalogue,
    PastTask as PastTask,
    check_space as check_space,
    past_tasks as past_tasks,
    require_experience as require_experience,
    split_tasks as split_tasks,
)
from foretune.methods.random.no_surrogate import NoSurrogate as NoSurrogate
from foretune.methods.random.stateless import StatelessLearner as StatelessLearner
from foretune.methods.rgpe.source_processes import (
    SourceLimits as SourceLimits,
    SourcesLearner as SourcesLearner,
    Voices as Voices,
)
from foretune.methods.rgpe.stacked import ExpectedLosses as ExpectedLosses
from foretune.methods.zero_shot.build import (
    Recipe as Recipe,
    portfolio_start as portfolio_start,
)
from foretune.methods.zero_shot.shipped import portfolio as portfolio
from foretune.methods.wrapped import (
    WrappedPosterior as WrappedPosterior,
    WrappedPrior as WrappedPrior,
    WrappedSurrogate as WrappedSurrogate,
)
from foretune.methods.stopping.policies import (
    POLICIES as POLICIES,
    make_policy as make_policy,
)
from foretune.methods.stopping.policy import (
    Decision as Decision,
    StepDecision as StepDecision,
    StepRange as StepRange,
    StoppingPolicy as StoppingPolicy,
)
