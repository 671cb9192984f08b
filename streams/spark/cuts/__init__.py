"""Take, save and interpret consistent cuts: single moments of a running application.

Start reading at `cut`, then `taking`. A cut is of one moment for all topics and stores, or it is
refused.
"""
