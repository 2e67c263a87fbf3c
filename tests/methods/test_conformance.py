"""Every method of the registry runs through the suite that ships for methods.

Each method has a class of its own, so that its tests follow each other and share what was learnt.
"""

import pytest

from foretune.search import METHODS
from foretune.testing import MethodConformance

VARIANTS = (
    "gp-prior", "ts", "gcp-prior-paper", "dre-ri", "deeppipe-paper", "deeppipe-ri",
    "latent-cash-random", "latent-cash-ri", "ablr-copula", "sgpt-copula", "zero-shot-gp",
)  # fmt: skip
"""Other settings of a method that is here too. They run in one kind of space."""


class VariantConformance(MethodConformance):
    """The suite in the kind of space that has everything: conditions, choices, and ranges."""

    @pytest.fixture
    def kind(self) -> str:
        return "pipeline"


for _name, _method in METHODS.items():
    _suite = VariantConformance if _name in VARIANTS else MethodConformance
    globals()[f"Test_{_name}"] = type(f"Test_{_name}", (_suite,), {"method": _method})
