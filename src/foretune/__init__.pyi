from foretune.automl.final_model.model import Model as Model
from foretune.automl.sklearn_api import (
    ForetuneClassifier as ForetuneClassifier,
    ForetuneRegressor as ForetuneRegressor,
)
from foretune.errors import ForetuneError as ForetuneError
from foretune.experience.trial import (
    Direction as Direction,
    Evaluation as Evaluation,
    Metric as Metric,
    Status as Status,
)
from foretune.experience.experience import Experience as Experience
from foretune.integrations.search_cv import ForetuneSearchCV as ForetuneSearchCV
from foretune.methods.contracts import Target as Target
from foretune.methods.zero_shot.shipped import portfolio as portfolio
from foretune.search.method_entry import Method as Method
from foretune.search.optimizer import Optimizer as Optimizer
from foretune.search.registry import METHODS as METHODS, method as method
from foretune.search.suggestions import Suggestion as Suggestion, Told as Told
from foretune.space.space import Encoded as Encoded, Space as Space

__version__: str
