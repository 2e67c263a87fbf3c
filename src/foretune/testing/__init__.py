"""The rules that a method must keep: a pytest suite to subclass, and small problems to try it on.

Example:
    >>> from foretune.testing import MethodConformance
    >>> class TestMyMethod(MethodConformance):
    ...     method = my_method
"""

from foretune._base.lazy_exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
