"""`python -m goex.daemon`: how `goex daemon run` and a client that finds no daemon start it."""

from goex.daemon.main import main

main()
