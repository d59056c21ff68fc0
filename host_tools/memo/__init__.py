"""MEMO-Bench: raters' votes to scores, text-to-image models judged by them, multimodal models asked about the pictures.

Rooms: `ratings` (votes as arrays), `mos` (screening and mean opinion scores), `scores` (the table of truth).
"""
