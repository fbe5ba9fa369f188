"""The front door: the only place where defaults are wired."""
