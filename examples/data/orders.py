"""Generate a small shop: customers move, prices change, and a product is taken out of sale.

There are orders of that product by then.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from examples.data.inputs import START_MS, Input

CITIES = ["Accra", "Bergen", "Cusco", "Delft", "Espoo"]
CUSTOMERS, PRODUCTS = 50, 20


def records(seed: int, count: int) -> Iterator[Input]:
    """Yield customers and products, then `count` changes, four in five of which are orders.

    The others change a customer or a product; at the end the first product is deleted.
    """
    chance = random.Random(seed)  # nosec B311 # example data

    def create_customer(number: int, time_ms: int) -> Input:
        row = {"name": f"Customer {number}", "city": chance.choice(CITIES)}
        return Input("customers", f"c{number}", row, time_ms)

    def create_product(number: int, time_ms: int) -> Input:
        row = {"name": f"Product {number}", "price": chance.randrange(1, 100)}
        return Input("products", f"p{number}", row, time_ms)

    for number in range(CUSTOMERS):
        yield create_customer(number, START_MS)
    for number in range(PRODUCTS):
        yield create_product(number, START_MS)
    for number in range(count):
        time_ms = START_MS + 1_000 + number * 500
        if number % 10 == 4:
            yield create_customer(chance.randrange(CUSTOMERS), time_ms)
        elif number % 10 == 9:
            yield create_product(chance.randrange(PRODUCTS), time_ms)
        else:
            order = {
                "customer_id": f"c{chance.randrange(CUSTOMERS)}",
                "product_id": f"p{chance.randrange(PRODUCTS)}",
                "quantity": chance.randrange(1, 5),
            }
            yield Input("orders", f"o{number}", order, time_ms)
    yield Input("products", "p0", None, START_MS + 1_000 + count * 500)
