"""Tables in, models out: the main job, from a plan to a fitted model (`fit`)."""

from foretune._base.lazy_exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
