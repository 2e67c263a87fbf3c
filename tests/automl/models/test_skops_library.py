"""What skops trusts in a process of Foretune's own."""

import pytest
from skops.io import _trusted_types

from foretune.automl.final_model.skops_library import TRUSTED, _FewTypes


def test_skops_is_to_trust_nothing_but_generators_of_random_numbers():
    few = _FewTypes(TRUSTED)
    lists = [name for name in vars(_trusted_types) if name.endswith("_TYPE_NAMES")]
    generators = "NUMPY_RANDOM_BIT_GENERATOR_TYPE_NAMES"
    assert {name: getattr(few, name) for name in lists} == {
        **{name: [] for name in lists},
        generators: _trusted_types.NUMPY_RANDOM_BIT_GENERATOR_TYPE_NAMES,
    }
    with pytest.raises(AttributeError):
        _ = few.other
