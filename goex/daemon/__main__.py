"""`python -m goex.daemon`: how `goex daemon run` and a client that finds no daemon start it."""

import gc

gc.disable()  # a thousand modules are loaded, none of which is garbage: looking for it takes 6 % of the start

from goex.daemon.main import main  # noqa: E402

gc.freeze()
gc.enable()
main()
