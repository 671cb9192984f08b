"""Provide the assignors that the coordinator runs for consumer groups (KIP-848).

`uniform` spreads partitions evenly and moves few; `range` gives each member the same range of each
topic. Both have one function, `assign(members, partitions)`:

- `members`: what each member is subscribed to and what its target is now (`subscription`);
- `partitions`: the number of partitions of each topic that exists. Topics that don't exist may be
  subscribed to and assigned; they do no harm, and nothing of them is in the result;
- the result has every member. One whose target stays as it is gets the very mapping that came in
  as `assigned` back, so that the caller may compare with `is`.

Start reading at `range`, then `uniform`. No assignor keeps anything between two calls. The result
does not depend on the order of the arguments: members go by id, topics by theirs. (Kafka takes both
in the order of its hash maps.)
"""
