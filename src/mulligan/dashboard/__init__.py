"""The dashboard: a page that shows runs, plans, targets and failures while they happen."""
