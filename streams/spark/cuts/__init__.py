"""Take, save and interpret consistent cuts: single moments of a running application."""
