"""The shared nouns, and the decision over them.

Everything else in GoEx stands on this package, and it stands on nothing of ours: frozen dataclasses that are
parsed once at the edge, pure functions over them, and one error root.
"""
