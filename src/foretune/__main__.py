"""The command `foretune`, also as `python -m foretune`."""

import signal


def main() -> None:
    """Run the command line.

    Ctrl-C ends it at once, without a traceback, while it is being loaded and when it is done.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from foretune._base.own_process import claim_process

    claim_process()
    from foretune.cli import main as run_command_line
    from foretune.run.stopping import stop_listening

    try:
        run_command_line()
    finally:
        stop_listening()


if __name__ == "__main__":
    main()
