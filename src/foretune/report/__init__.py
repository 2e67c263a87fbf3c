"""The HTML report of one run. It knows numbers and names, but no benchmarks."""

from foretune._base.lazy_exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
