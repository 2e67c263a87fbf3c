from foretune.automl.evaluation import (
    Protocol as Protocol,
    evaluate as evaluate,
)
from foretune.automl.final_model.model import Model as Model
from foretune.automl.live_portfolio.api import build_portfolio as build_portfolio
from foretune.automl.metrics import (
    Scorer as Scorer,
    scorer as scorer,
)
from foretune.automl.sklearn_api import (
    ForetuneClassifier as ForetuneClassifier,
    ForetuneRegressor as ForetuneRegressor,
)
from foretune.automl.space_names import SHIPPED_SPACES as SHIPPED_SPACES
from foretune.automl.spaces import (
    ShippedSpace as ShippedSpace,
    load_shipped_space as load_shipped_space,
)
from foretune.automl.worker_tables import (
    load_libraries as load_libraries,
    open_table as open_table,
)
