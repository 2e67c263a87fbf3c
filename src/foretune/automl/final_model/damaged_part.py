"""The error for a part of a model file that its library cannot have written."""


class DamagedPartError(ValueError):
    """A part of a pipeline is damaged, or was made to do harm.

    part: its kind, such as "booster".
    """

    def __init__(self, message: str, *, part: str = "booster") -> None:
        super().__init__(message)
        self.part = part
