"""The errors of a storage, as sentences for the user."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from foretune._base.databases import hide_passwords, is_sqlite
from foretune.errors import UsageError
from foretune.run.study import StoreAwayError
from foretune.stores.optuna.trial_format import NOT_FOUND


@contextmanager
def explain_storage_errors(url: str, *others: type[Exception]) -> Iterator[None]:
    """Turn the errors of a storage, and `others`, into one sentence for the user."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    complaints: tuple[type[Exception], ...]
    complaints = (StorageInternalError, SQLAlchemyError, sqlite3.Error, OSError, *others)
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"the store '{hide_passwords(url)}' needs a database driver, but it cannot be imported "
            f"({error}): install one, such as psycopg[binary] or pymysql",
            rule="missing-driver",
        ) from error
    except KeyError as error:
        if error.args != (NOT_FOUND,):
            raise
        raise UsageError(
            f"a study must stay in its store while it is worked on, but '{hide_passwords(url)}' "
            "no longer holds it or one of its trials: the same command begins it anew",
            rule="study-deleted",
        ) from error
    except complaints as error:
        cause = error.__cause__ if isinstance(error, StorageInternalError) else None
        raise _explain(url, cause or error) from error


def _explain(url: str, cause: BaseException) -> UsageError:
    """Return the error that tells the user what is wrong with a storage."""
    from sqlalchemy.exc import InterfaceError, OperationalError

    first = next(iter(str(cause).strip().splitlines()), type(cause).__name__)
    if isinstance(cause, OSError) and cause.strerror:
        first = f"{cause.strerror} ({cause.filename})" if cause.filename else cause.strerror
    if isinstance(cause, (InterfaceError, OperationalError)) and not is_sqlite(url):
        return StoreAwayError(
            f"the store '{hide_passwords(url)}' must be within reach, but it says: {first}; once "
            "that is repaired, the same command resumes",
            rule="store-away",
        )
    return UsageError(
        f"the store '{hide_passwords(url)}' must be within reach and of this version of Optuna, "
        f"but it says: {first}; once that is repaired, the same command resumes",
        rule="store-refused",
    )
