"""Answer Prometheus: which figures of the broker there are, how they are collected and served.

The modules named `..._definitions` say of each figure what it is called, what it means and what
Kafka calls it; `definitions` lists them, and a collector can emit no other. The modules named
`..._figures` are the collectors. They read plain integers, which the parts of the broker count
anyway, and only when somebody scrapes: on the endpoint's own thread. So they copy collections
before they iterate them. Nothing here is imported by a broker without the endpoint.

Start reading at `definitions`, then `coordinator_figures`.
"""
