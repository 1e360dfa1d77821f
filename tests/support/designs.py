"""Designs that tests share: of equal shapes and constants, so that compiled functions are shared.

A model is a static argument of compiled functions. Two studies share them if they have as many
arms, the same features, the same noise on the scale from -2 to 2, and these settings.
"""

from cocobandits import CocoSettings, SmcConfig

SMALL = CocoSettings(
    nodes_per_arm=6, nodes_per_feature=4, num_modes=20, inference=SmcConfig(num_particles=40)
)
