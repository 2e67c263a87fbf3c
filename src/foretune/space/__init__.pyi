from foretune.space.algorithms import Algorithms as Algorithms
from foretune.space.definition import Draft as Draft
from foretune.space.notation import SEPARATOR as SEPARATOR
from foretune.space.parameters import (
    Kind as Kind,
    Parameter as Parameter,
)
from foretune.space.sampling import legal_values as legal_values
from foretune.space.space import (
    Encoded as Encoded,
    Space as Space,
)
from foretune.space.structure import (
    Algorithm as Algorithm,
    Stage as Stage,
    Structure as Structure,
)
