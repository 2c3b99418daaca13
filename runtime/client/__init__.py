"""What commands ask of Temporal and the archive: jobs begun, watched, reset, forked, verified."""
