"""Run the parts of CI side by side, each within its time."""
