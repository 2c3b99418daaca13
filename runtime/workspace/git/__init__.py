"""Versions of a workspace by the means of git: differences, patches, blame, repositories.

libgit2 (pygit2) does the work; nothing here reads or writes a repository of the user's.
"""
