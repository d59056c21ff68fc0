"""The annotation platform: `rules` decides when a rater may go on, `study` keeps every vote, `app` is the screen."""
