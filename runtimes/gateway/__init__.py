"""The only way out of a container: one Unix socket an action, behind which every request is held to the plan."""
