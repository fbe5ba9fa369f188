"""The journal of runs: entries, state, leases, retention."""
