"""Files of a study."""
