"""Python: asks Weir whether a request may pass. `allowed, status, headers, problem = decide(token, "GET", "/things")`

`address` is the client's, for limits and blocks by address: Weir believes it if this program is in `decisions.trusted`. `service_account` is the
client's X-Service-Account. `held` also says who calls; do not read X-Account-Id of the request, which a client could send itself.
"""
import contextlib
import http.client
import json
import types
import urllib.error
import urllib.request

URL = "http://127.0.0.1:9000"


def decide(token, method, path, url=URL, *, service_account=None, address=None):
    answer = _ask(url, address, token=token, serviceAccount=service_account, method=method, path=path)
    return answer["allowed"], answer["status"], answer["headers"], answer.get("problem")


@contextlib.contextmanager
def held(token, method, path, hold="60s", url=URL, *, service_account=None, address=None):
    """Holds a decision for as long as the work takes, and reports what it has cost. Work that raises an exception costs nothing.

    with held(token, "POST", "/completions") as request:
        if request.allowed:
            request.cost = call_the_model(request.account)
    """
    answer = _ask(url, address, token=token, serviceAccount=service_account, method=method, path=path, hold=hold)
    request = types.SimpleNamespace(**answer)
    try:
        yield request
    except BaseException:
        request.cost = 0
        raise
    finally:
        if answer.get("receipt"):  # What Weir does not get to know costs what was reserved.
            _post(f"{url}/settle", {"receipt": answer["receipt"], "cost": request.cost}, 5)


def _ask(url, address, **question):
    target = urllib.request.Request(f"{url}/decide", headers={"X-Forwarded-For": address or ""})
    status, answer = _post(target, {name: value for name, value in question.items() if value is not None}, 0.25)
    if status == 200:
        return answer
    if status in (401, 403):
        raise RuntimeError(f"Weir does not let this program ask: {answer['detail']}")
    nobody = {"cost": 0, "account": None, "organization": None, "principal": None, "principalType": None}
    if status >= 500:  # The request is served, uncounted.
        return {"allowed": True, "status": 200, "headers": {"Service-RateLimit-Mode": "degraded"}, **nobody}
    # Weir cannot read the question, because the path of the request is too long for example.
    return {"allowed": False, "status": status, "headers": {}, "problem": answer, **nobody}


def _post(url, body, timeout):
    """The status and the JSON of the answer. Without an answer, the status is 503."""
    try:
        try:
            reply = urllib.request.urlopen(url, json.dumps(body).encode(), timeout=timeout)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:  # Its body may break off.
            status, text = reply.status, reply.read()
    except (OSError, http.client.HTTPException):
        return 503, None
    return status, json.loads(text) if status < 500 else None
