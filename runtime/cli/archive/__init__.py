"""``holdfast archive``: what becomes of archived jobs."""
