"""What becomes of archived jobs: copies, legal holds, retention, deletion."""
