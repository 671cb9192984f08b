"""Enrich orders: join each order with its customer and its product by foreign keys.

    millrace run examples.orders:app

It reads the tables `orders`, `customers` and `products`, and writes the table `enriched-orders`.
Each is keyed by its own id, so both joins are by a foreign key: an order is written anew when it
changes, and when its customer or its product does.
"""

from typing import Any

from millrace import App, serdes

Row = dict[str, Any]

app = App("order-enrichment")
orders = app.table("orders", key=serdes.string, value=serdes.json)
customers = app.table("customers", key=serdes.string, value=serdes.json)
products = app.table("products", key=serdes.string, value=serdes.json)


def with_customer(order: Row, customer: Row) -> Row:
    """Add the customer's name and city to an order."""
    return {**order, "customer": customer["name"], "city": customer["city"]}


def with_product(order: Row, product: Row | None) -> Row:
    """Add the product's name and the total price to an order, if the product exists.

    An order of a product that was taken out of the catalogue is still an order.
    """
    if product is None:
        return {**order, "product": None, "total": None}
    return {**order, "product": product["name"], "total": order["quantity"] * product["price"]}


(
    orders.join(
        customers,
        with_customer,
        foreign_key=lambda _, order: order["customer_id"],
        value=serdes.json,
        name="customer",
    )
    .left_join(
        products,
        with_product,
        foreign_key=lambda _, order: order["product_id"],
        value=serdes.json,
        name="product",
    )
    .to_stream()
    .to("enriched-orders")
)

if __name__ == "__main__":
    app.run()
