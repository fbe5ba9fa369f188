"""Processes of a run: started, watched, stopped."""
