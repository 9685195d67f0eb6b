"""Programs that work on one folder: snapshot before, exact undo after."""
