"""Studies and logs, our own and those of other tools. Each kind of store has a folder."""

from foretune._base.lazy_exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
