"""Studies in an Optuna storage.

Everything is written through Optuna's own storage, so its tools can read it. A lock of the whole
study decides what Optuna leaves open: who may begin the last trial, and who runs what a crash left
running.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretune._base.databases import is_sqlite, sqlite_path
from foretune.errors import ForetuneError, MissingExtraError
from foretune.experience import Metric, Status
from foretune.experience.curves import Curve, CurvePoint, join_points
from foretune.experience.trial import Trial
from foretune.run.heartbeat import Heartbeat, LivenessCheck, Owner
from foretune.run.locks import Exclusive, FileLock, Reentrant, ServerLock
from foretune.run.study import NOTHING, Study, check_running
from foretune.run.study_identity import identity
from foretune.run.trial_folders import folder_name
from foretune.run.trial_log import Changes
from foretune.space import Space
from foretune.stores.addresses import log_ahead, storage_url
from foretune.stores.optuna.database import StoredTrial
from foretune.stores.optuna.labels import OWNER, SECONDS, STATUS, TURN
from foretune.stores.optuna.storage_errors import explain_storage_errors
from foretune.stores.optuna.stored_curves import CurveWriter
from foretune.stores.optuna.study_creation import create_study, owner_of
from foretune.stores.optuna.trial_format import (
    ABANDONED,
    BEAT,
    NOT_ENDED,
    NOTES,
    REASON,
    Translation,
    TrialReader,
)

if TYPE_CHECKING:
    from optuna.storages import BaseStorage, RDBStorage
    from optuna.trial import FrozenTrial

FOLDERS = "foretune-trials"
"""The folder for folders of trials if the store is a server. It lies in the current folder."""
BUSY_SECONDS = 120
"""How long SQLite waits for another program that writes."""


class OptunaStudy(Study):
    """A study that outlives its process and that other processes can join."""

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
        self._curves = CurveWriter(database.engine, metrics[0].name)
        self._lock = lock
        self._owner = Owner.new()
        self._witness = LivenessCheck()
        self._heart = Heartbeat(self._beat)
        self._beats = 0
        self._held: dict[int, int] = {}
        """{number: Optuna's id} of the trials that this process runs."""

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
        """Create the study, or join the same one."""
        _need_optuna()
        address = storage_url(url)
        # Optuna raises a RuntimeError if the tables are not its own.
        with explain_storage_errors(address, RuntimeError):
            # Tables, too, are created by one process only.
            everything = Reentrant(_exclusive(address, "foretune"))
            with everything.hold():
                database = _database(address)
                create_study(database, name, metrics, identity(space, metrics, settings))
            everything.close()
            lock = Reentrant(_exclusive(address, f"foretune {name}"))
            return cls(name, address, space, metrics, database, lock)

    @property
    def folder(self) -> Path:
        """The folder beside an SQLite file, or in the current folder if the store is a server."""
        url = self.url or ""
        if not is_sqlite(url):
            return Path(FOLDERS) / folder_name(self.name)
        path = sqlite_path(url)
        return path.with_name(f"{path.name}.trials") / folder_name(self.name)

    def trials(self) -> list[Trial]:
        """Return all trials of all processes as they are now, by number."""
        with self._in_reach():
            return self._reader.refresh().trials()

    def changes(self, seen: int = 0) -> Changes:
        """Return the trials of all processes that changed since an earlier look."""
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
        """Store how a trial ended. The state comes last, so a killed process leaves it running."""
        from optuna.trial import TrialState

        with self.lock():
            self._check_end(number, self._held, status, values)
            told, attributes = self._translation.outcome(status, values, seconds, reason, notes)
            trial_id = self._held[number]
            if self._is_mine(self._storage.get_trial(trial_id)):
                for key, value in attributes.items():
                    self._storage.set_trial_user_attr(trial_id, key, value)
                states = {Status.DONE: TrialState.COMPLETE, Status.STOPPED: TrialState.PRUNED}
                state = states.get(status, TrialState.FAIL)
                self._storage.set_trial_state_values(trial_id, state, told)
        # The trial stays ours until all is stored. So an unfinished end can be let go after an
        # interruption, and can be repeated if a server went away.
        self._curves.close(self._held.pop(number))

    def report(self, number: int, points: Sequence[CurvePoint]) -> None:
        """Store in one transaction what a trial of this process reported."""
        trial_id = self._held[number]
        with self.lock():
            self._curves.add(trial_id, points, self._owner.token)

    def curve(self, number: int) -> Curve | None:
        """Return all that a trial of this process has reported, also in earlier processes."""
        return join_points(self._curves.points(self._held[number]))

    def pause(
        self,
        number: int,
        *,
        seconds: float,
        reason: str = "",
        notes: Mapping[str, Any] = NOTHING,
    ) -> None:
        """Store that a trial waits. The state comes last, so a killed process leaves it running."""
        from optuna.trial import TrialState

        said = {SECONDS: seconds, REASON: reason, NOTES: dict(notes), STATUS: Status.PAUSED.name}
        with self.lock():
            check_running(number, self._held)
            trial_id = self._held[number]
            frozen = self._storage.get_trial(trial_id)
            if self._is_mine(frozen):
                for key, value in said.items():
                    self._storage.set_trial_user_attr(trial_id, key, value)
                self._count_turn(frozen)
                self._storage.set_trial_state_values(trial_id, TrialState.WAITING)
        self._curves.close(self._held.pop(number))

    def resume(self, number: int) -> bool:
        """Take a paused trial into this process. Return False if it is no longer paused."""
        from optuna.trial import TrialState

        with self.lock():
            trial_id = self._storage.get_trial_id_from_study_id_trial_number(self._id, number)
            frozen = self._storage.get_trial(trial_id)
            is_paused = frozen.user_attrs.get(STATUS) == Status.PAUSED.name
            if frozen.state is not TrialState.WAITING or not is_paused:
                return False
            self._storage.set_trial_system_attr(trial_id, OWNER, self._owner.record())
            self._count_turn(frozen)
            for key in (STATUS, REASON):
                self._storage.set_trial_user_attr(trial_id, key, NOT_ENDED[key])
            self._storage.set_trial_state_values(trial_id, TrialState.RUNNING)
            self._hold(number, trial_id)
        self._heart.start()
        return True

    def _count_turn(self, frozen: "FrozenTrial") -> None:
        """Let others see that a trial was paused or resumed, even if they look rarely."""
        turn = int(frozen.system_attrs.get(TURN, 0)) + 1
        self._storage.set_trial_system_attr(frozen._trial_id, TURN, turn)

    def _hold(self, number: int, trial_id: int) -> None:
        """Take a trial that has run before into this process."""
        self._curves.open(trial_id, self._reader.read_points(trial_id))
        self._held[number] = trial_id

    def abandoned_trials(self) -> list[Trial]:
        """Return the trials to be run again: of dead processes, and those that were let go."""
        unfinished = self._unfinished_trials()
        return [self._translation.trial(frozen) for frozen in unfinished if self._is_dead(frozen)]

    def unsure(self) -> list[Trial]:
        """Return running trials of other machines that have shown no sign of life or death yet."""
        return [
            self._translation.trial(frozen)
            for frozen in self._unfinished_trials()
            if not (owner := owner_of(frozen)).is_here() and self._witness.is_unsure(owner.token)
        ]

    def take_over(self, number: int) -> int:
        """Take a trial that was left behind into this process.

        If a process died while it ended the trial, what it stored about that end is removed.
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
            self._hold(number, trial_id)
        self._heart.start()
        return deaths

    def let_go(self, number: int) -> None:
        """Give a running trial of this process back. In Optuna's words, it waits."""
        from optuna.trial import TrialState

        with self.lock():
            trial_id = self._held.pop(number, None)
            if trial_id is not None:
                self._curves.close(trial_id)
            if trial_id is not None and self._is_mine(self._storage.get_trial(trial_id)):
                self._storage.set_trial_state_values(trial_id, TrialState.WAITING)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let no other process begin, end or take over a trial meanwhile."""
        with self._in_reach(), self._lock.hold():
            yield

    def close(self) -> None:
        """Let running trials go and leave the storage."""
        self._heart.stop()
        # If the storage is out of reach, others will find these trials when this process has died.
        with suppress(ForetuneError):
            for number in list(self._held):
                self.let_go(number)
        self._curves.disconnect()
        self._database.remove_session()
        self._database.engine.dispose()
        self._lock.close()

    def _unfinished_trials(self) -> list[StoredTrial]:
        """Return the trials that run or wait, after a look at their owners' signs of life."""
        with self._in_reach():
            found = self._reader.read_open_trials()
        signs: dict[str, list[tuple[int, int]]] = {}
        for frozen in found:
            beat = frozen.system_attrs.get(BEAT, 0)
            signs.setdefault(owner_of(frozen).token, []).append((frozen.number, beat))
        for token, sign in signs.items():
            self._witness.look(token, tuple(sign))
        return found

    def _is_dead(self, frozen: StoredTrial) -> bool:
        owner = owner_of(frozen)
        if frozen.state.name == "WAITING":
            return frozen.user_attrs.get(STATUS) != Status.PAUSED.name
        if owner.token == self._owner.token:
            return frozen.number not in self._held
        if owner.is_here():
            return not owner.is_running_here()
        return self._witness.is_dead(owner.token)

    def _is_mine(self, frozen: "FrozenTrial") -> bool:
        running = not frozen.state.is_finished()
        return running and owner_of(frozen).token == self._owner.token

    def _beat(self) -> None:
        """Show a sign of life on one of the running trials."""
        with self.lock():
            if self._held:
                self._beats += 1
                trial_id = min(self._held.values())
                self._storage.set_trial_system_attr(trial_id, BEAT, self._beats)

    def _in_reach(self) -> AbstractContextManager[None]:
        """Turn complaints of the storage into one sentence."""
        return explain_storage_errors(self.url or "")


def check_store(given: str) -> None:
    """Refuse a store that cannot keep a study, before anything else is done or written.

    This checks its address, its folder, its driver, and whether a server is within reach.
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
    """Import everything that opening a storage needs, before a lock is held for it."""
    try:
        for name in ("optuna", "sqlalchemy.orm", "alembic.command"):
            import_module(name)
    except ImportError:
        raise MissingExtraError("optuna", "optuna", "a study that is stored") from None


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
