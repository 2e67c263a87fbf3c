from foretune._base.files import (
    check_folder_of as check_folder_of,
    replace_file as replace_file,
    try_lock as try_lock,
    write_text as write_text,
)
from foretune._base.names import (
    quote_names as quote_names,
    suggestion as suggestion,
)
from foretune._base.progress import (
    SILENT as SILENT,
    Progress as Progress,
    track as track,
)
from foretune._base.progress import TerminalProgress as TerminalProgress
from foretune._base.threads import ONE_NUMERIC_THREAD as ONE_NUMERIC_THREAD
from foretune.cli.executor_options import executor_options as executor_options
from foretune.cli.option_values import names_in as names_in
from foretune.cli.output_paths import (
    check_experience_out as check_experience_out,
    check_out as check_out,
)
from foretune.cli.option_values import (
    SEED as SEED,
    memory as memory,
    seconds as seconds,
)
