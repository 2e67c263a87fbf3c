"""What may be tried: spaces, their structure, and configurations as arrays."""

from foretune.space.parameters import Kind, Parameter
from foretune.space.space import Encoded, Space
from foretune.space.structure import Algorithm, Stage, Structure

__all__ = ["Algorithm", "Encoded", "Kind", "Parameter", "Space", "Stage", "Structure"]
