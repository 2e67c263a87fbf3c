from foretune.testing.conformance import MethodConformance as MethodConformance
from foretune.testing.problems import (
    Problem as Problem,
    problem as problem,
)
