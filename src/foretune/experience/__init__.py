"""What was tried: evaluations of configurations on many tasks, in one table and one file."""

from foretune._base.lazy_exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
