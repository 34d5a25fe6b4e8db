"""To and from other programs: export, import, and certificates that the numbers are the same."""
