"""An application under load and kills, while Spark checks its books again and again."""
