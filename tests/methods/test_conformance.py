"""Every method of the registry runs through the suite that ships for methods.

Each method has a class of its own, so that its tests follow each other and share what was learnt.
"""

from foretune.search import METHODS
from foretune.testing import MethodConformance

for _name, _method in METHODS.items():
    globals()[f"Test_{_name}"] = type(f"Test_{_name}", (MethodConformance,), {"method": _method})
