from foretune.search.method_entry import (
    Design as Design,
    Method as Method,
    StepsBy as StepsBy,
)
from foretune.search.optimizer import Optimizer as Optimizer
from foretune.search.registry import (
    METHODS as METHODS,
    lazy_learner as lazy_learner,
    method as method,
)
from foretune.search.seeds import derive_seed as derive_seed
from foretune.search.suggestions import (
    Suggestion as Suggestion,
    Told as Told,
)
