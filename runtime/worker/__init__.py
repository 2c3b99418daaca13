"""The worker's process, and the marks by which others see that it lives."""
