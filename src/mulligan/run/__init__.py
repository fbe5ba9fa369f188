"""Agent programs that survive limits, crashes, reboots."""
