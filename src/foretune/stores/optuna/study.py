"""Studies in an Optuna storage.

Everything is written through Optuna's own storage, so its tools can read along. What Optuna leaves
open is closed here by a lock of the whole study: who may begin the last trial, who runs what a
crash left running.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from foretune._base.databases import is_sqlite, sqlite_path
from foretune.errors import ForetuneError, ForetuneWarning, MissingExtraError, UsageError
from foretune.experience import Metric, Status
from foretune.experience.trial import Trial
from foretune.run.heartbeat import Heartbeat, LivenessCheck, Owner
from foretune.run.locks import Exclusive, FileLock, Reentrant, ServerLock
from foretune.run.study import NOTHING, Study
from foretune.run.study_identity import check_same, differs_in_metrics_only, identity
from foretune.run.trial_log import Changes
from foretune.space import Space
from foretune.stores.addresses import log_ahead, storage_url
from foretune.stores.optuna.database import StoredTrial, StudyTables
from foretune.stores.optuna.labels import IDENTITY, OWNER
from foretune.stores.optuna.storage_errors import explain_storage_errors
from foretune.stores.optuna.trial_format import ABANDONED, BEAT, NOT_ENDED, Translation
from foretune.stores.optuna.trial_reader import TrialReader

if TYPE_CHECKING:
    from optuna import Study as OptunasStudy
    from optuna.storages import BaseStorage, RDBStorage
    from optuna.trial import FrozenTrial

    from foretune.stores.optuna.database import AnyTrial

BUSY_SECONDS = 120
"""How long SQLite waits for another program that writes."""


class OptunaStudy(Study):
    """A study that outlives its process and that others can join."""

    def __init__(
        self,
        name: str,
        url: str,
        space: Space,
        metrics: Sequence[Metric],
        database: "RDBStorage",
        lock: Reentrant,
    ) -> None:
        super().__init__(name, url, space, metrics)
        self._database = database
        self._storage: BaseStorage = database
        self._id = self._storage.get_study_id_from_name(name)
        self._translation = Translation(space, metrics)
        self._reader = TrialReader(database, self._id, self._translation)
        self._lock = lock
        self._owner = Owner.new()
        self._witness = LivenessCheck()
        self._heart = Heartbeat(self._beat)
        self._beats = 0
        self._held: dict[int, int] = {}
        """Number -> Optuna's id of the trials that this process runs."""

    @classmethod
    def join(
        cls,
        url: str,
        name: str,
        *,
        space: Space,
        metrics: Sequence[Metric],
        settings: Mapping[str, Any] = NOTHING,
    ) -> "OptunaStudy":
        """Create the study, or join it where it is the same."""
        _need_optuna()
        address = storage_url(url)
        # Optuna raises a RuntimeError where the tables are not its own.
        with explain_storage_errors(address, RuntimeError):
            # Tables too are created by one process only.
            everything = Reentrant(_exclusive(address, "foretune"))
            with everything.hold():
                database = _database(address)
                _create(database, name, metrics, identity(space, metrics, settings))
            everything.close()
            lock = Reentrant(_exclusive(address, f"foretune {name}"))
            return cls(name, address, space, metrics, database, lock)

    def trials(self) -> list[Trial]:
        """All trials of all processes as they are now, by number."""
        with self._in_reach():
            return self._reader.refresh().trials()

    def changes(self, seen: int = 0) -> Changes:
        """Trials of all processes that began or ended since an earlier look."""
        with self._in_reach():
            return self._reader.refresh().changes(seen)

    def begin(self, config: Mapping[str, Any], *, chosen_by: str) -> int:
        """Store a running trial, which others see at once, and return its number."""
        known = self.space.encode([config]).dicts()[0]
        template = self._translation.running(known, self._owner, chosen_by)
        with self.lock():
            trial_id = self._storage.create_new_trial(self._id, template)
            number = self._storage.get_trial_number_from_id(trial_id)
            self._held[number] = trial_id
        self._heart.start()
        return number

    def end(
        self,
        number: int,
        *,
        status: Status,
        values: Mapping[str, float] = NOTHING,
        seconds: float = float("nan"),
        reason: str = "",
        notes: Mapping[str, Any] = NOTHING,
    ) -> None:
        """Store how a trial ended; the state comes last, so that a kill leaves it running."""
        from optuna.trial import TrialState

        with self.lock():
            self._check_end(number, self._held, status, values)
            told, attributes = self._translation.outcome(status, values, seconds, reason, notes)
            trial_id = self._held[number]
            if self._is_mine(self._storage.get_trial(trial_id)):
                for key, value in attributes.items():
                    self._storage.set_trial_user_attr(trial_id, key, value)
                state = TrialState.COMPLETE if status is Status.DONE else TrialState.FAIL
                self._storage.set_trial_state_values(trial_id, state, told)
        # Held until all is stored: what an interruption leaves unfinished can be let go, and what
        # a server that went away may not have stored can be ended again.
        del self._held[number]

    def abandoned_trials(self) -> list[Trial]:
        """Trials to be run again: those of dead processes, and those that were let go."""
        unfinished = self._unfinished_trials()
        return [self._translation.trial(frozen) for frozen in unfinished if self._is_dead(frozen)]

    def unsure(self) -> list[Trial]:
        """Running trials of other machines of which no sign of life or death is known yet."""
        return [
            self._translation.trial(frozen)
            for frozen in self._unfinished_trials()
            if not (owner := _owner(frozen)).is_here() and self._witness.is_unsure(owner.token)
        ]

    def take_over(self, number: int) -> int:
        """Make a trial that was left behind one of this process.

        What a process that died while it ended the trial has said of it is taken back.
        """
        from optuna.trial import TrialState

        with self.lock():
            unfinished = {frozen.number: frozen for frozen in self._reader.read_open_trials()}
            self._check_take_over(number, unfinished)
            frozen = unfinished[number]
            trial_id = frozen.trial_id
            self._storage.set_trial_system_attr(trial_id, OWNER, self._owner.record())
            for key, nothing in NOT_ENDED.items():
                if key in frozen.user_attrs:
                    self._storage.set_trial_user_attr(trial_id, key, nothing)
            deaths = int(frozen.user_attrs.get(ABANDONED, 0))
            if frozen.state is TrialState.WAITING:
                self._storage.set_trial_state_values(trial_id, TrialState.RUNNING)
            else:
                deaths += 1
                self._storage.set_trial_user_attr(trial_id, ABANDONED, deaths)
            self._held[number] = trial_id
        self._heart.start()
        return deaths

    def let_go(self, number: int) -> None:
        """Give a running trial of this process back: in Optuna's words, it waits."""
        from optuna.trial import TrialState

        with self.lock():
            trial_id = self._held.pop(number, None)
            if trial_id is not None and self._is_mine(self._storage.get_trial(trial_id)):
                self._storage.set_trial_state_values(trial_id, TrialState.WAITING)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Inside it no other process begins, ends or takes over a trial."""
        with self._in_reach(), self._lock.hold():
            yield

    def close(self) -> None:
        """Let go what is running and leave the storage."""
        self._heart.stop()
        # What cannot be let go because the storage is out of reach is found by its owner's death.
        with suppress(ForetuneError):
            for number in list(self._held):
                self.let_go(number)
        self._database.remove_session()
        self._database.engine.dispose()
        self._lock.close()

    def _unfinished_trials(self) -> list[StoredTrial]:
        """Trials that run or wait, after a look at their owners' signs of life."""
        with self._in_reach():
            found = self._reader.read_open_trials()
        signs: dict[str, list[tuple[int, int]]] = {}
        for frozen in found:
            beat = frozen.system_attrs.get(BEAT, 0)
            signs.setdefault(_owner(frozen).token, []).append((frozen.number, beat))
        for token, sign in signs.items():
            self._witness.look(token, tuple(sign))
        return found

    def _is_dead(self, frozen: StoredTrial) -> bool:
        owner = _owner(frozen)
        if frozen.state.name == "WAITING":
            return True
        if owner.token == self._owner.token:
            return frozen.number not in self._held
        if owner.is_here():
            return not owner.is_running_here()
        return self._witness.is_dead(owner.token)

    def _is_mine(self, frozen: "FrozenTrial") -> bool:
        running = not frozen.state.is_finished()
        return running and _owner(frozen).token == self._owner.token

    def _beat(self) -> None:
        """Show a sign of life, on one of the trials that are running."""
        with self.lock():
            if self._held:
                self._beats += 1
                trial_id = min(self._held.values())
                self._storage.set_trial_system_attr(trial_id, BEAT, self._beats)

    def _in_reach(self) -> AbstractContextManager[None]:
        """Say in one sentence what the storage complains of meanwhile."""
        return explain_storage_errors(self.url or "")


def check_store(given: str) -> None:
    """Refuse a store that no study can be kept in, before anything else is done or written.

    Its address, its folder, the driver of its kind, a server that is out of reach.
    """
    _need_optuna()
    address = storage_url(given)
    if is_sqlite(address):
        return
    from sqlalchemy import create_engine

    with explain_storage_errors(address):
        engine = create_engine(address)
        engine.connect().close()
        engine.dispose()


def _need_optuna() -> None:
    """Import all that opening a storage takes, before a lock is held for it."""
    try:
        for name in ("optuna", "sqlalchemy.orm", "alembic.command"):
            import_module(name)
    except ImportError:
        raise MissingExtraError("optuna", "optuna", "a study that is stored") from None


def _owner(frozen: "AnyTrial") -> Owner:
    return Owner(**frozen.system_attrs[OWNER])


def _exclusive(url: str, name: str) -> Exclusive:
    if is_sqlite(url):
        path = sqlite_path(url)
        return FileLock(path.with_name(f"{path.name}.lock"))
    from sqlalchemy import create_engine

    return ServerLock(create_engine(url, pool_pre_ping=True), name)


def _database(url: str) -> "RDBStorage":
    from optuna.storages import RDBStorage

    if is_sqlite(url):
        log_ahead(sqlite_path(url))
        return RDBStorage(url, engine_kwargs={"connect_args": {"timeout": BUSY_SECONDS}})
    return RDBStorage(url, engine_kwargs={"pool_pre_ping": True})


def _create(
    database: "RDBStorage", name: str, metrics: Sequence[Metric], wanted: dict[str, Any]
) -> None:
    """Make the study unless it exists; refuse one that is another's or different.

    One that differs in its metric alone, and in which nothing has succeeded yet, is begun anew:
    most likely the metric was mistyped, and the failures say nothing of the right one.
    """
    study = _create_or_load(database, name, metrics)
    stored = study.user_attrs.get(IDENTITY)
    anew = stored is not None and differs_in_metrics_only(stored, wanted)
    if anew and _came_to_nothing(database, study):
        warnings.warn(
            ForetuneWarning(
                f"no trial of the study '{name}' has succeeded, and its metric was another: it is "
                "begun anew",
                rule="study-begun-anew",
                value=name,
            ),
            stacklevel=2,
        )
        database.delete_study(study._study_id)
        study = _create_or_load(database, name, metrics)
        stored = None
    if stored is not None:
        check_same(name, stored, wanted)
        return
    if study.get_trials(deepcopy=False):
        raise UsageError(
            f"a study must have been begun by foretune, but '{name}' was begun by another program: "
            "choose another name (or another store)",
            rule="foreign-study",
            value=name,
        )
    _check_directions(study, metrics)
    _name_metrics(study, metrics)
    study.set_user_attr(IDENTITY, wanted)


def _check_directions(study: "OptunasStudy", metrics: Sequence[Metric]) -> None:
    """Refuse an empty study of another program that is to optimise something else."""
    theirs = [direction.name.lower() for direction in study.directions]
    ours = _directions(metrics)
    if theirs != ours:
        raise UsageError(
            f"a study must optimise what is asked for ({', '.join(ours)}), but "
            f"'{study.study_name}' was created to {', '.join(theirs)}: choose another name, or "
            "another direction",
            rule="other-direction",
            value=(theirs, ours),
        )


def _directions(metrics: Sequence[Metric]) -> list[Literal["minimize", "maximize"]]:
    return ["minimize" if metric.sign > 0 else "maximize" for metric in metrics]


def _create_or_load(database: "RDBStorage", name: str, metrics: Sequence[Metric]) -> "OptunasStudy":
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(
            storage=database,
            study_name=name,
            directions=_directions(metrics),
            load_if_exists=True,
        )
    finally:
        optuna.logging.set_verbosity(verbosity)


def _came_to_nothing(database: "RDBStorage", study: "OptunasStudy") -> bool:
    """Whether there are trials, none has succeeded, and none may be running."""
    with database.engine.connect() as connection:
        if "COMPLETE" in StudyTables(connection, (study._study_id,)).states().values():
            return False  # known without reading what the trials hold
    found = study.get_trials(deepcopy=False)
    return bool(found) and not any(
        frozen.state.name == "COMPLETE" or _may_be_running(frozen) for frozen in found
    )


def _may_be_running(frozen: "FrozenTrial") -> bool:
    if frozen.state.name != "RUNNING":
        return False
    if OWNER not in frozen.system_attrs:
        return True
    owner = _owner(frozen)
    return not owner.is_here() or owner.is_running_here()


def _name_metrics(study: "OptunasStudy", metrics: Sequence[Metric]) -> None:
    from optuna.exceptions import ExperimentalWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        study.set_metric_names([metric.name for metric in metrics])
