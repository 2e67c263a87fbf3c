"""What a method must hold to: a pytest suite to subclass, and small problems to try it on.

Example:
    >>> from foretune.testing import MethodConformance
    >>> class TestMyMethod(MethodConformance):
    ...     method = my_method
"""

from foretune.testing.conformance import MethodConformance
from foretune.testing.problems import Problem, problem

__all__ = ["MethodConformance", "Problem", "problem"]
