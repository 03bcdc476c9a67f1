"""Python: asks Weir whether a request may pass. `allowed, status, headers, problem = decide(token, "GET", "/things")`"""
import json
import urllib.request


def decide(token, method, path, url="http://127.0.0.1:9000"):
    question = json.dumps({"token": token, "method": method, "path": path}).encode()
    try:
        with urllib.request.urlopen(f"{url}/decide", question, timeout=0.25) as reply:
            answer = json.load(reply)
    except OSError:  # Without an answer the request is served, uncounted.
        return True, 200, {"Service-RateLimit-Mode": "degraded"}, None
    return answer["allowed"], answer["status"], answer["headers"], answer.get("problem")
