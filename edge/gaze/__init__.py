"""Gaze: sources (one file each), mapping onto the scene, fixations."""

#: Modules of this folder that are no gaze sources.
HELPERS = frozenset(
    [
        *(
            "angles",
            "auxiliary",
            "calibration",
            "candidates",
            "clusters",
            "collect",
            "description",
            "fixations",
            "geometry",
        ),
        *("inlet", "mapping", "recorded", "simulator", "sources", "validation"),
    ]
)
