"""A module whose import starts a thread: a process that has imported it must not be forked."""

import threading
import time

threading.Thread(target=time.sleep, args=(3600.0,), daemon=True).start()
