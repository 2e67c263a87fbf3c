"""Trials that are command lines: `python train.py --lr {lr}`, which print their result.

`template` reads a command template, `places` knows where a text may stand in it, `filling` puts in
the values of a configuration, and `running` runs it. docs/decisions/023 says why this is safe.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from foretune.errors import UsageError
from foretune.run.commands.filling import CommandError, CommandStart, check_passable, plan_of
from foretune.run.commands.places import NUMBER
from foretune.run.commands.running import NO_LIMITS, CommandLimits, CommandRun, json_result
from foretune.run.commands.template import Slot, split_atoms
from foretune.run.running_trial import RunningTrial

if TYPE_CHECKING:
    # Worker processes import this module: they are not to load what spaces need.
    from foretune.space import Space
    from foretune.space.parameters import Parameter

__all__ = [
    "CONFIG_VARIABLE",
    "FOLDER_VARIABLE",
    "RESUME_VARIABLE",
    "Command",
    "CommandError",
    "CommandLimits",
]

CONFIG_VARIABLE = "FORETUNE_CONFIG"
"""The environment variable that holds the whole configuration as JSON."""
FOLDER_VARIABLE = "FORETUNE_FOLDER"
"""The environment variable that holds the path of the trial's own folder, for checkpoints."""
RESUME_VARIABLE = "FORETUNE_RESUMED_FROM"
"""The environment variable that holds the last step that was reported before a pause. It is empty
at the first start."""
REMEDY = (
    "give it to the program as an argument of its own, as in --name {name}; or put the rest of the "
    f"line into a script that gets it so; or let the program read it from {CONFIG_VARIABLE}"
)


@dataclass(frozen=True, slots=True)
class Command:
    """A command line with a placeholder `{name}` where a hyperparameter's value belongs.

    Values reach the program unchanged, and no shell ever reads one as a command. `{{` and `}}`
    stand for braces. An argument that holds an inactive hyperparameter is left out, all of it, and
    so is the option just before it: without `depth`, `fit --depth {depth} -v` is `fit -v`, and so
    is `fit --shape "{depth} {width}" -v`. The result is the last line of the output that is a JSON
    number or object. An exit code other than 0 is a failure; its reason is the last error line.

    While the command runs, each line of its standard output that is a JSON object with "step" is a
    report (see `reporting`). When the trial is to stop, the command gets SIGTERM. Then it needs no
    result, and its exit code does not matter.

        Command("python train.py --lr {lr}")({"lr": 0.1}, trial)
    """

    template: str
    limits: CommandLimits = NO_LIMITS

    def check(self, space: "Space") -> None:
        """Refuse placeholders that are no hyperparameters, or whose values may not stand there."""
        if not self.template.strip():
            raise UsageError(
                "a command must not be empty: write the program and its arguments",
                rule="empty-command",
            )
        if "\0" in self.template:
            raise UsageError(
                "a command must not hold the character 0: remove it",
                rule="null-character",
                field="command",
            )
        names = [each.name for each in split_atoms(self.template) if isinstance(each, Slot)]
        for name in names:
            if name not in space.names:
                raise UsageError(
                    f"a placeholder must be a hyperparameter of the space, but '{{{name}}}' is "
                    f"none of {', '.join(space.names):.500}: correct it, or write {{{{ for a brace",
                    rule="unknown-placeholder",
                    field=name,
                )
        parameters = {each.name: each for each in space.parameters if each.name in names}
        self._check_numbers(parameters)
        self._check_unread(space, names)
        for name, parameter in parameters.items():
            _check_texts(name, parameter)

    def _check_numbers(self, parameters: "Mapping[str, Parameter]") -> None:
        """Refuse texts where only numbers may stand."""
        for name, reason in plan_of(self.template).number_places:
            wrong = next((t for t in _texts(parameters[name]) if not NUMBER.fullmatch(t)), None)
            if wrong is not None:
                raise UsageError(
                    f"in a command, '{{{name}}}' must be a number where it stands, because "
                    f"{reason}; but '{name}' can be {wrong!r:.80}: {REMEDY}",
                    rule="number-place",
                    field=name,
                    value=wrong,
                )

    def _check_unread(self, space: "Space", names: list[str]) -> None:
        """Refuse what is impossible if the template goes to the shell unchanged."""
        plan = plan_of(self.template)
        if plan.script is not None:
            return
        always = set(space.config_space.unconditional_hyperparameters)
        for name in names:
            if name not in always:
                raise UsageError(
                    f"a placeholder must always have a value in a command with {plan.unread}, but "
                    f"'{name}' can be inactive: {REMEDY}",
                    rule="inactive-placeholder",
                    field=name,
                )
        atoms = split_atoms(self.template)
        for atom, after in pairwise(atoms):
            if isinstance(atom, Slot) and after in ("<", ">"):
                raise UsageError(
                    f"a placeholder must not stand just before '{after}', which would take a "
                    f"number for a stream, but '{{{atom.name}}}' does: put a blank between them",
                    rule="placeholder-before-arrow",
                    field=atom.name,
                )

    def start(self, config: Mapping[str, Any]) -> CommandStart:
        """Return the arguments and the variables for a configuration."""
        return plan_of(self.template).start(config)

    def __call__(self, config: dict[str, Any], trial: RunningTrial) -> Any:
        """Run the command and return the number or the mapping that it prints.

        None if it was stopped before it printed one.
        """
        resumed_from = trial.resumed_from
        variables = {
            CONFIG_VARIABLE: json.dumps(config, default=str),
            FOLDER_VARIABLE: str(trial.folder),
            RESUME_VARIABLE: "" if resumed_from is None else _step_text(resumed_from),
        }
        run = CommandRun(self.start(config), variables, self.limits, trial)
        run.finish()
        try:
            return json_result(run.output)
        except CommandError:
            if run.is_stopped:
                return None
            raise


def _step_text(step: float) -> str:
    """Return a step as people write it: a whole number without a point."""
    return str(int(step)) if step.is_integer() else repr(step)


def _texts(parameter: "Parameter") -> Iterator[str]:
    """Return the texts of all values; none for ranges, which hold numbers only."""
    return iter(()) if parameter.is_number else map(str, parameter.choices or (parameter.default,))


def _check_texts(name: str, parameter: "Parameter") -> None:
    for text in _texts(parameter):
        try:
            check_passable(name, text)
        except CommandError as error:
            raise UsageError(
                f"a value must be a text that programs can get, but {error}: choose another one",
                rule=error.rule,
                field=name,
            ) from error
