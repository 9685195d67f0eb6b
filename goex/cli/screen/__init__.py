"""`goex approve --screen`: what waits, the whole plan of each, and the decision, on a full screen."""
