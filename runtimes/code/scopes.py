"""The names of the permission to run a program at all, whatever it calls."""

SERVICE = "code"
MAY_READ, MAY_CHANGE = "read", "change"
RUN = "run"
PROGRAM = "program_sha256"  # the argument by which a grant can be bound to one program
