"""Python: asks Weir whether a request may pass. `allowed, status, headers, problem = decide(token, "GET", "/things")`"""
import contextlib
import json
import types
import urllib.request


def decide(token, method, path, url="http://127.0.0.1:9000"):
    answer = _post(f"{url}/decide", {"token": token, "method": method, "path": path}, 0.25)
    if not answer:  # The request is served, uncounted.
        return True, 200, {"Service-RateLimit-Mode": "degraded"}, None
    return answer["allowed"], answer["status"], answer["headers"], answer.get("problem")


@contextlib.contextmanager
def held(token, method, path, hold="60s", url="http://127.0.0.1:9000"):
    """Holds a decision for as long as the work takes, and reports what it has cost. Work that raises an exception costs nothing.

    with held(token, "POST", "/completions") as request:
        if request.allowed:
            request.cost = call_the_model()
    """
    answer = _post(f"{url}/decide", {"token": token, "method": method, "path": path, "hold": hold}, 0.25)
    served = {"allowed": True, "status": 200, "headers": {"Service-RateLimit-Mode": "degraded"}, "cost": 0}
    request = types.SimpleNamespace(**(answer or served))
    try:
        yield request
    except BaseException:
        request.cost = 0
        raise
    finally:
        if answer.get("receipt"):  # What Weir does not get to know costs what was reserved.
            _post(f"{url}/settle", {"receipt": answer["receipt"], "cost": request.cost}, 5)


def _post(url, body, timeout):
    try:
        with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=timeout) as reply:
            return json.load(reply)
    except OSError:
        return {}
