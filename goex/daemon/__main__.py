"""`python -m goex.daemon`: how `goex daemon run` and a client that finds no daemon start it."""

import gc


def start() -> None:
    """Load the daemon and run it. None of a thousand modules is garbage: while they load, none is looked for."""
    gc.disable()
    from goex.daemon.main import main

    gc.freeze()
    gc.enable()
    main()


start()
