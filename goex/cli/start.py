"""The `goex` command's start."""

import gc


def main() -> None:
    """Load the command and run it. None of hundreds of modules is garbage: while they load, none is looked for."""
    gc.disable()
    from goex.cli.main import main

    gc.freeze()
    gc.enable()
    main()
