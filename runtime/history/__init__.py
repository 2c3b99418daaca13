"""Events, the event log, the View and its properties, condensers. Pure."""
