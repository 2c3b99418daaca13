"""What a view can be a view of: files, directories, globs, web pages, the archive.

Each is opened as text with a fingerprint.
"""
