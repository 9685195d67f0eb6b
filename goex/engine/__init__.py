"""The one path that every action takes, whoever asks and however."""
