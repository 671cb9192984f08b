"""Serve the counts of `examples.word_count` over HTTP, in the shape that its clients want.

    pip install fastapi uvicorn
    MILLRACE_QUERY_PORT=0 uvicorn examples.web.api:api --port 8000
    curl localhost:8000/words/import

Each such process is a worker of the application, and its API answers for all workers. Routes are
plain functions, no coroutines: a read waits for other workers, and FastAPI calls plain functions on
threads of their own.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse

from examples.web.counts_of_words import AgedCountOfWord, CountOfWord, list_counts, read_count
from examples.word_count import app
from millrace import RoutedStore, StaleBounds, StoreUnavailable

TIMEOUT_S = 2.0


@asynccontextmanager
async def run_worker(api: FastAPI) -> AsyncIterator[None]:
    """Run a worker in this process, from before the first request until after the last one.

    Uvicorn handles signals, and leaves this block once it has ended the requests: then the worker
    commits and leaves its group.
    """
    # Without a broker it ends with an error, and whoever started it tries again.
    with app.start(handle_signals=False, wait_for_broker=False) as running:
        api.state.running = running
        yield


api = FastAPI(title="Counts of words", lifespan=run_worker)


def open_counts(
    request: Request, max_age_s: Annotated[float | None, Query(ge=0)] = None
) -> RoutedStore[str, int]:
    """Return the counts of all workers; a client that allows an age is answered by standbys too."""
    stale_ok = None if max_age_s is None else StaleBounds(max_age=max_age_s)
    counts: RoutedStore[str, int] = request.app.state.running.query(
        "counts", timeout=TIMEOUT_S, stale_ok=stale_ok
    )
    return counts


Counts = Annotated[RoutedStore[str, int], Depends(open_counts)]


@api.get("/words")
def list_words(
    counts: Counts, prefix: str = "", limit: Annotated[int, Query(ge=1, le=1_000)] = 20
) -> list[CountOfWord]:
    """List the words with a prefix."""
    return list_counts(counts, prefix, limit)


@api.get("/words/{word:path}")  # `path`, since a word may have a slash in it
def read_word(counts: Counts, word: str) -> AgedCountOfWord:
    """Read how often a word has occurred."""
    return read_count(counts, word)


@api.get("/health")
def read_health(request: Request) -> Response:
    """Read the worker's health, for a load balancer: 503 while it should get no requests."""
    health = request.app.state.running.health()
    status = 200 if health.healthy else 503
    return Response(health.as_json(), status, media_type="application/json")


@api.exception_handler(StoreUnavailable)
def refuse_for_now(request: Request, error: StoreUnavailable) -> JSONResponse:
    """Answer that the counts can't be known at this moment, rather than with less than all."""
    return JSONResponse({"detail": str(error)}, 503, headers={"Retry-After": "1"})
