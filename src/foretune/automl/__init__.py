"""Makes models from tables: a `Job` describes a fit and runs it.

Its rooms are `knowledge` (from past fits), `estimators` (pipelines) and `final_model` (the model
that is saved). Other modules enter `final_model` through `fit_final_model` and `Model` only.
"""

from foretune._base.lazy_exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
