"""Each example does on its own data what a plain loop over them says, and what its page says."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from examples.anomalies import SUSPICIOUS
from examples.data.anomalies import ATTACKED
from examples.data.inputs import Input
from examples.fraud import broken_rules
from tests.unit.examples.running import of, run, table

MINUTE_MS = 60_000


def test_word_count_counts_the_words() -> None:
    inputs, outputs = run("word_count", 300)
    truth = Counter(word for line in inputs for word in line.value.split())
    assert table(outputs["counts-by-word"]) == truth


def test_dedupe_sends_each_event_on_once() -> None:
    inputs, outputs = run("dedupe", 1_000)
    assert [record.key for record in outputs["events-once"]] == [f"event-{n}" for n in range(1_000)]
    assert len(inputs) > 1_150, "hardly anything was sent twice"


def test_page_views_are_counted_by_the_region_of_the_user() -> None:
    inputs, outputs = run("page_views", 1_500)
    regions: dict[str, str] = {}
    truth: Counter[tuple[str, int]] = Counter()
    for topic, user, value, time_ms in inputs:
        if topic == "users":
            regions[user] = value["region"]
            continue
        start_ms = time_ms // (5 * MINUTE_MS) * 5 * MINUTE_MS
        truth[regions.get(user, "UNKNOWN"), start_ms] += 1
    found = {(r.key, r.value["from_ms"]): r.value["views"] for r in outputs["views-by-region"]}
    assert found == truth
    assert "UNKNOWN" in {region for region, _ in found}


def test_an_account_under_attack_is_reported_once_and_nobody_else() -> None:
    inputs, outputs = run("anomalies", 3_000)
    alerts = {record.key: record.value for record in outputs["suspicious-logins"]}
    assert sorted(alerts) == sorted(ATTACKED)
    assert len(outputs["suspicious-logins"]) == len(ATTACKED)
    for account, alert in alerts.items():
        times_ms = [each.timestamp_ms for each in inputs if each.key == account]
        assert alert["attempts"] >= SUSPICIOUS
        assert alert["first_ms"] in times_ms
        assert alert["last_ms"] in times_ms


def test_an_order_is_as_its_customer_and_its_product_are_now() -> None:
    inputs, outputs = run("orders", 400)
    rows: dict[str, dict[str, Any]] = defaultdict(dict)
    for topic, key, value, _ in inputs:
        rows[topic][key] = value
    truth = {}
    for number, order in rows["orders"].items():
        customer, product = (
            rows["customers"][order["customer_id"]],
            rows["products"][order["product_id"]],
        )
        truth[number] = {
            **order,
            "customer": customer["name"],
            "city": customer["city"],
            "product": None if product is None else product["name"],
            "total": None if product is None else order["quantity"] * product["price"],
        }
    assert table(outputs["enriched-orders"]) == truth
    assert any(row["product"] is None for row in truth.values())


def test_payments_that_break_a_rule_are_told_with_the_rule() -> None:
    inputs, outputs = run("fraud", 1_000)
    seen: dict[str, list[Input]] = defaultdict(list)
    truth = []
    for payment in inputs:
        mine = seen[payment.key]
        mine.append(payment)
        recent = [each for each in mine if each.timestamp_ms > payment.timestamp_ms - 600_000]
        if rules := broken_rules([each.value for each in recent]):
            truth.append((payment.key, {**payment.value, "rules": rules}))
    assert [(record.key, record.value) for record in outputs["suspicious-payments"]] == truth
    assert {"two-countries", "tested", "emptied"} <= {card for card, _ in truth}


def test_the_top_ten_are_the_ten_that_were_played_most() -> None:
    inputs, outputs = run("top_ten", 2_000)
    songs = {song.key: song.value for song in of(inputs, "songs")}
    plays = Counter(play.value["song"] for play in of(inputs, "plays"))
    found = table(outputs["top-ten"])
    assert sorted(found) == ["fado", "jazz", "punk"]
    for genre, ten in found.items():
        counts = [n for song, n in plays.items() if songs[song]["genre"] == genre]
        assert [count for _, count in ten] == sorted(counts, reverse=True)[:10]


def test_a_minute_that_was_hot_is_told_once_when_it_is_over() -> None:
    inputs, outputs = run("temperature", 6_000)
    highest: dict[tuple[str, int], float] = {}
    now_ms = 0
    for _, sensor, value, time_ms in inputs:
        now_ms = max(now_ms, time_ms)
        minute_ms = time_ms // MINUTE_MS * MINUTE_MS
        if minute_ms + MINUTE_MS + 10_000 > now_ms:
            highest[sensor, minute_ms] = max(value, highest.get((sensor, minute_ms), value))
    truth = {key: value for key, value in highest.items() if value > 30}
    alerts = [((r.key, r.value["minute_ms"]), r.value["highest"]) for r in outputs["heat-alerts"]]
    assert dict(alerts) == truth
    assert len(alerts) == len(truth) > 10
