"""A job's files: as they lie (``files``, ``walk``, ``glob``), and versions of them, as directories
(``checkouts``) and by the means of git (``git``).
"""
