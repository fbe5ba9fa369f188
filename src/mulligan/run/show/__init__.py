"""Output of runs and plans: views, status line, events, notifications."""
