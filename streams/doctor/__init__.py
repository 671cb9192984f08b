"""Look at machine, settings, application, group and brokers, and say what is wrong.

Start reading at `points`, which lists what is looked at. Each subject has a module of checks, which
are functions of facts; `cluster_facts` and `application_facts` fetch these, each once.
"""
