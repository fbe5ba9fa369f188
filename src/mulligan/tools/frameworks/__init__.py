"""Registration of a toolbox in agent frameworks; none is imported before its method is called."""
