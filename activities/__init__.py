"""Everything that touches the world: model calls, workspace reads, tools, archive writes."""
