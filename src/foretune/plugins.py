"""What packages that extend Foretune use beside its rooms.

Progress, files that are replaced in one step, names in messages, and the options that commands
share. The groups of entry points are in docs/architecture.md.
"""

from foretune._base.lazy_exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
