"""One moment of a running application: taken, kept, and what belongs to it."""
