"""Images: files and arrays as people have them, brought into one form: 8 bits, (channels, size, size).

Each name is imported from its file; decoding needs Pillow and never torch, so that worker processes start quickly.
"""
