"""Where actions run, and how they are taken back: the sandbox, the gateway, and one runtime a kind of action."""
