"""Tables as people keep them: read from files, inspected column by column, encoded as numbers.

`read_table` reads a file or a data frame into a `Table`, `infer_schema` finds out what columns
are, and `Schema.encode` makes the matrix of numbers that models learn from. The modules of this
room are internal; other rooms use the names below, and `TextEncoder`, which needs scikit-learn.
"""

from foretune._base.lazy_exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
