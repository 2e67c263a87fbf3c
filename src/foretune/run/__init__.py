"""Running trials in this process or in worker processes with limits, and the loop that tunes."""

from foretune._base.lazy_exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
