"""What runs and plans show while they work."""
