"""Run a worker, or several processes of them, and the embedded broker; and end them."""
